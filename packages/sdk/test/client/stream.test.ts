import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { serverSentEvents } from "../../src/client/event-source.ts";
import { createClient } from "../../src/client.ts";
import { loopback, problem } from "./loopback.ts";

const quick = { initialDelay: 1, maxDelay: 5, maxAttempts: 3 };

function frame(seq: number, type = "VariablesChanged"): string {
  return `id: r1:${seq}\nevent: ${type}\ndata: ${JSON.stringify({ seq, turn: seq, type, at: "2030-01-01T00:00:00.000Z", data: {} })}\n\n`;
}

function open(response: ServerResponse): ServerResponse {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(":\n\n");
  return response;
}

test("a stream that breaks or ends early is taken up after the last event that was seen", async (context) => {
  const { url, seen } = await loopback(context, (response, times) => {
    if (times === 1) open(response).write(frame(1) + frame(2), () => response.destroy());
    else if (times === 2) problem(response, 503, "SHUTTING_DOWN", true, { "retry-after": "0" });
    else if (times === 3) open(response).end(frame(3));
    else open(response).end(frame(4, "InstanceCompleted"));
  });
  const seqs: number[] = [];
  for await (const event of createClient({ url, retry: quick }).handle("a").stream()) {
    assert.equal(event.id, `r1:${event.seq}`);
    seqs.push(event.seq);
  }
  assert.deepEqual(seqs, [1, 2, 3, 4]);
  assert.deepEqual(
    seen.map(({ headers }) => headers["last-event-id"]),
    [undefined, "r1:2", "r1:2", "r1:3"],
  );
});

test("a stream with nothing more to come is over", async (context) => {
  const { url } = await loopback(context, (response, times) =>
    times === 1 ? open(response).end(frame(1)) : response.writeHead(204).end(),
  );
  const seqs: number[] = [];
  for await (const event of createClient({ url, retry: quick }).handle("a").stream()) seqs.push(event.seq);
  assert.deepEqual(seqs, [1]);
});

test("a stream that brings nothing again and again is given up", async (context) => {
  const { url, seen } = await loopback(context, (response) => open(response).end());
  const stream = createClient({ url, retry: quick }).handle("a").stream();
  await assert.rejects(
    async () => {
      for await (const _ of stream) assert.fail();
    },
    { code: "UNREACHABLE" },
  );
  assert.equal(seen.length, 3);
});

test("a stream is refused as its problem says", async (context) => {
  const { url } = await loopback(context, (response) => problem(response, 404, "INSTANCE_NOT_FOUND", false));
  await assert.rejects(createClient({ url }).handle("a").stream()[Symbol.asyncIterator]().next(), { code: "INSTANCE_NOT_FOUND" });
});

test("who stops reading a stream hangs up", async (context) => {
  let hungUp = () => {};
  const gone = new Promise<void>((resolve) => {
    hungUp = resolve;
  });
  const { url } = await loopback(context, (response) => {
    response.on("close", hungUp);
    open(response).write(frame(1));
  });
  for await (const _ of createClient({ url }).handle("a").stream()) break;
  await gone;
});

test("an abort ends a stream that is waiting", async (context) => {
  const controller = new AbortController();
  const { url } = await loopback(context, (response) => open(response).write(frame(1)));
  const seqs: number[] = [];
  await assert.rejects(
    async () => {
      for await (const event of createClient({ url }).handle("a").stream({ signal: controller.signal })) {
        seqs.push(event.seq);
        setImmediate(() => controller.abort(new Error("enough")));
      }
    },
    { message: "enough" },
  );
  assert.deepEqual(seqs, [1]);
});

test("events are put together however the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(
    `:\n\n${frame(1)}: hello\nid: r1:2\nevent: x\ndata:{"ü":\ndata: 1}\nretry: 5\n\n:\n\nid: none\n\n${frame(3)}id: cut`,
  );
  for (const size of [1, 2, 7, 64, bytes.length]) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of serverSentEvents(body)) events.push(event);
    assert.deepEqual(
      events.map(({ id }) => id),
      ["r1:1", "r1:2", "r1:3"],
    );
    assert.equal(events[1]?.data, '{"ü":\n1}');
  }
});
