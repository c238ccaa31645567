/** A client that retries against a server that is busy, restarting, or gone right after it committed: nothing is started twice. */
import assert from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { createClient } from "@wovyr/sdk/client";
import { approval, echo, orchestrated } from "./orchestrated.ts";

type Fate = "429" | "503" | "lost" | "through";

/** Stands in front of a server: the n-th request meets the n-th fate, later ones pass. A lost one is done, but its answer never comes. */
async function between(context: TestContext, url: string, fates: readonly Fate[]): Promise<string> {
  let times = 0;
  const server: Server = createServer((incoming, outgoing) => {
    const fate = fates[times++] ?? "through";
    if (fate === "429" || fate === "503") {
      incoming.resume().on("end", () => outgoing.writeHead(Number(fate), { "retry-after": "0" }).end("busy"));
      return;
    }
    const forwarded = request(url + incoming.url, { method: incoming.method, headers: incoming.headers }, (answer) => {
      if (fate === "lost") answer.resume().on("end", () => outgoing.destroy());
      else answer.pipe(outgoing.writeHead(answer.statusCode ?? 500, answer.headers));
    });
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const retry = { initialDelay: 1, maxDelay: 5 };
const fates: readonly Fate[] = ["429", "503", "lost", "lost"];

test("a batch of 500 is started once, though its request is sent five times", async (context) => {
  const { url, local } = await orchestrated(context);
  const client = createClient({ url: await between(context, url, fates), retry });
  const outcomes = await client.startBatch(
    echo,
    Array.from({ length: 500 }, (_, input) => ({
      input,
      ...(input % 3 === 0 && { idempotencyKey: `k${input}` }),
      ...(input % 3 === 1 && { id: `i${input}` }),
    })),
  );
  assert.ok(outcomes.every(({ ok }) => ok));
  let runs = 0;
  for await (const _ of local.list({ workflow: echo })) runs += 1;
  assert.equal(runs, 500);
  const results = await Promise.all(outcomes.map((outcome) => outcome.ok && outcome.handle.result()));
  assert.deepEqual(
    results,
    Array.from(results, (_, at) => at),
  );
});

test("a single start without a key is started once too, and executes to its result", async (context) => {
  const { url, local } = await orchestrated(context);
  const client = createClient({ url: await between(context, url, fates), retry });
  assert.deepEqual(await client.execute(echo, { n: 1n }), { n: 1n });
  let runs = 0;
  for await (const _ of local.list({ workflow: echo })) runs += 1;
  assert.equal(runs, 1);
});

test("an answer to a repeated request says that it is one", async (context) => {
  const { url } = await orchestrated(context);
  const post = (body: object) =>
    fetch(`${url}/v1/workflows/echo/instances?wait=5s`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "k" },
      body: JSON.stringify(body),
    });
  const first = await post({ input: 1 });
  const again = await post({ input: 1 });
  assert.deepEqual([first.status, first.headers.get("idempotency-replayed")], [201, null]);
  assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [201, "true"]);
  const answer = (await first.json()) as { id: string };
  assert.deepEqual(await again.json(), answer);
  assert.equal(again.headers.get("location"), `/v1/instances/${answer.id}`);
  const other = await post({ input: 2 });
  assert.deepEqual([other.status, ((await other.json()) as { code: string }).code], [422, "IDEMPOTENCY_CONFLICT"]);
});

test("a batch that is repeated with one key for the whole starts nothing twice", async (context) => {
  const { url, local } = await orchestrated(context);
  const post = async () => {
    const response = await fetch(`${url}/v1/workflows/echo/instances/batch`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "batch" },
      body: JSON.stringify({ items: [{ input: 1 }, { input: 2 }] }),
    });
    return (await response.json()) as { items: { runId: string; replayed: boolean }[] };
  };
  const first = await post();
  const again = await post();
  assert.deepEqual(
    again.items.map(({ runId }) => runId),
    first.items.map(({ runId }) => runId),
  );
  assert.deepEqual(
    again.items.map(({ replayed }) => replayed),
    [true, true],
  );
  let runs = 0;
  for await (const _ of local.list({ workflow: echo })) runs += 1;
  assert.equal(runs, 2);
});

test("an event, a cancellation or a termination that is repeated says so, and another one with its key is refused", async (context) => {
  const { url, local } = await orchestrated(context);
  const post = (id: string, path: string, body: object) =>
    fetch(`${url}/v1/instances/${id}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "k" },
      body: JSON.stringify(body),
    });
  const cases = [
    ["events/other", { payload: 1 }, { payload: 2 }],
    ["cancel", { reason: "a" }, { reason: "b" }],
    ["terminate", { reason: "a" }, { reason: "b" }],
  ] as const;
  for (const [path, body, other] of cases) {
    const { id } = await local.start(approval, undefined);
    const first = await post(id, path, body);
    const again = await post(id, path, body);
    assert.deepEqual([first.status, first.headers.get("idempotency-replayed"), await first.json()], [202, null, { id }], path);
    assert.deepEqual([again.status, again.headers.get("idempotency-replayed"), await again.json()], [202, "true", { id }], path);
    const conflict = await post(id, path, other);
    assert.deepEqual([conflict.status, ((await conflict.json()) as { code: string }).code], [422, "IDEMPOTENCY_CONFLICT"], path);
  }
});
