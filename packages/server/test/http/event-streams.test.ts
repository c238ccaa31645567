import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { sleep, workflow } from "@wovyr/sdk";
import { createClient } from "@wovyr/sdk/client";
import type { HistoryEvent, HistoryPage, StreamItem } from "@wovyr/sdk/internal";
import type { FastifyInstance } from "fastify";
import { createHttpServer, type HttpServerOptions } from "../../src/http/create-http-server.ts";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { scripted } from "./scripted-operations.ts";

function event(seq: number, type = "VariablesChanged"): HistoryEvent {
  return { seq, turn: seq, type, at: new Date(0), data: {} };
}

/** A run on which nothing happens until `push`, and which counts who follows it. */
class QuietRun {
  following = 0;
  readonly #listeners = new Set<(item: StreamItem) => void>();
  readonly #changed = new Set<() => void>();
  tail = 1;

  readonly operations = scripted({
    history: async (id, { fromSeq = 1 } = {}): Promise<HistoryPage> => ({
      runId: `run-of-${id}`,
      items: fromSeq <= this.tail ? [event(fromSeq)] : [],
    }),
    stream: (id, options) => this.#stream(`run-of-${id}`, options?.signal),
  });

  async *#stream(runId: string, signal: AbortSignal | undefined): AsyncGenerator<StreamItem> {
    const queue: StreamItem[] = [];
    let wake = () => {};
    const take = (item: StreamItem) => {
      queue.push(item);
      wake();
    };
    const abort = () => wake();
    this.#listeners.add(take);
    signal?.addEventListener("abort", abort);
    this.#count(1);
    try {
      while (signal?.aborted !== true) {
        const item = queue.shift();
        if (item !== undefined) yield { ...item, runId };
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#listeners.delete(take);
      this.#count(-1);
    }
  }

  push(data: Record<string, unknown> = {}): void {
    const seq = ++this.tail;
    for (const listener of this.#listeners) listener({ runId: "", event: { ...event(seq), data } });
  }

  /** Resolves when so many follow. */
  async followed(by: number): Promise<void> {
    while (this.following !== by) await new Promise<void>((resolve) => this.#changed.add(resolve));
  }

  #count(change: number): void {
    this.following += change;
    for (const tell of this.#changed) tell();
    this.#changed.clear();
  }
}

async function serving(
  context: TestContext,
  run: QuietRun,
  options: Partial<HttpServerOptions> = {},
): Promise<{ app: FastifyInstance; url: string; port: number }> {
  const app = createHttpServer({ operations: () => run.operations, ...options });
  context.after(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { app, url, port: Number(new URL(url).port) };
}

/** Opens a stream on a bare socket; resolves when its headers have come. */
async function follow(port: number, id: string, headers = ""): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`GET /v1/instances/${id}/stream HTTP/1.1\r\nhost: x\r\n${headers}\r\n`);
  await new Promise<void>((resolve) => socket.once("readable", resolve));
  return socket;
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}

test("H115 clients that vanish from a quiet run leave no subscription, timer or socket behind", async (context) => {
  const run = new QuietRun();
  const { app, port } = await serving(context, run);
  const before = timers();
  const sockets = await Promise.all(Array.from({ length: 300 }, (_, at) => follow(port, `i${at % 3}`)));
  await run.followed(300);
  for (const socket of sockets) socket.destroy();
  await run.followed(0);
  const connections = await new Promise<number>((resolve, reject) =>
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
  assert.equal(connections, 0);
  assert.ok(timers() <= before, `${timers()} timers, ${before} before`);
});

test("a reset of the connection counts as leaving too", async (context) => {
  const run = new QuietRun();
  const { port } = await serving(context, run);
  const socket = await follow(port, "a");
  await run.followed(1);
  socket.resetAndDestroy();
  await run.followed(0);
});

test("one stream more than the bound is answered with 429, and has a place when another ends", async (context) => {
  const run = new QuietRun();
  const { url, port } = await serving(context, run, { maxStreams: 2 });
  const first = await follow(port, "a");
  await follow(port, "a");
  await run.followed(2);
  const refused = await fetch(`${url}/v1/instances/a/stream`);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal(((await refused.json()) as { code: string }).code, "OVERLOADED");
  first.destroy();
  await run.followed(1);
  const response = await fetch(`${url}/v1/instances/a/stream`);
  assert.equal(response.status, 200);
  await response.body?.cancel();
});

test("events are framed with id, type and data, and a quiet stream shows signs of life", async (context) => {
  const run = new QuietRun();
  const { url } = await serving(context, run, { heartbeat: 5 });
  const response = await fetch(`${url}/v1/instances/a/stream`);
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "no-store");
  await run.followed(1);
  run.push({ text: "two\nlines" });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk);
    if ((text.match(/^:$/gm)?.length ?? 0) >= 3 && text.includes("data:")) break;
  }
  assert.match(text, /^:\n\n/);
  const frame = text.split("\n\n").find((block) => block.startsWith("id:"));
  assert.equal(
    frame,
    'id: run-of-a:2\nevent: VariablesChanged\ndata: {"seq":2,"turn":2,"type":"VariablesChanged","at":"1970-01-01T00:00:00.000Z","data":{"text":"two\\nlines"}}',
  );
});

test("a client that does not read is not buffered for, and is cut off in the end", async (context) => {
  const run = new QuietRun();
  const { port } = await serving(context, run, { heartbeat: 20 });
  const socket = await follow(port, "a");
  socket.pause();
  await run.followed(1);
  const large = { text: "x".repeat(1_000_000) };
  for (let at = 0; at < 30; at++) run.push(large);
  await run.followed(0);
});

test("a stream ends when the server closes, and closing does not wait for its client", async (context) => {
  const run = new QuietRun();
  const { app, url } = await serving(context, run);
  const response = await fetch(`${url}/v1/instances/a/stream`);
  await run.followed(1);
  const text = response.text();
  await app.close();
  assert.equal(await text, ":\n\n");
  assert.equal(run.following, 0);
});

test("H116 an id that no stream of this run ever sent is refused before the stream begins", async (context) => {
  const run = new QuietRun();
  run.tail = 5;
  const { url } = await serving(context, run);
  for (const id of [
    "x",
    "5",
    "run-of-a",
    "run-of-a:",
    "run-of-a:0",
    "run-of-a:-1",
    "run-of-a:06",
    "run-of-a:1e3",
    "run-of-a:6",
    "run-of-a:99999999999999999999",
    "a b:1",
    "run-of-a:1;",
  ]) {
    const response = await fetch(`${url}/v1/instances/a/stream`, { headers: { "last-event-id": id } });
    assert.equal(response.status, 400, id);
    assert.equal(((await response.json()) as { code: string }).code, "INVALID_CURSOR");
  }
  const other = await fetch(`${url}/v1/instances/a/stream?runId=run-of-a`, { headers: { "last-event-id": "another-run:1" } });
  assert.equal(other.status, 400);
  assert.equal(run.following, 0);
});

test("HEAD does not open a stream", async (context) => {
  const run = new QuietRun();
  const { url } = await serving(context, run);
  const response = await fetch(`${url}/v1/instances/a/stream`, { method: "HEAD" });
  assert.deepEqual([response.status, response.headers.get("allow")], [405, "GET"]);
});

test("a stream whose source fails ends, and the failure is logged", async (context) => {
  const lines: string[] = [];
  const operations = scripted({
    history: async () => ({ runId: "r", items: [event(1)] }),
    async *stream() {
      yield { runId: "r", event: event(1) };
      throw new TypeError("secret is not a function");
    },
  });
  const app = createHttpServer({
    operations: () => operations,
    log: { error: (message, data) => void lines.push(`${message} ${String(Reflect.get(data ?? {}, "error"))}`) },
  });
  context.after(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const text = await (await fetch(`${url}/v1/instances/a/stream`)).text();
  assert.match(text, /id: r:1\n/);
  assert.doesNotMatch(text, /secret/);
  assert.deepEqual(lines, ["GET /v1/instances/a/stream failed TypeError: secret is not a function"]);
});

test("H114 readers of ended streams, readers that leave and readers of what fails leave no listener behind", async (context) => {
  const warnings: string[] = [];
  const warn = (warning: Error) => void warnings.push(warning.message);
  process.on("warning", warn);
  context.after(() => process.removeListener("warning", warn));
  const done = workflow("done", async function* () {
    return 1;
  });
  const open = workflow("open", async function* () {
    yield* sleep("1h");
  });
  await using orchestrator = await createOrchestrator({ workflows: [done, open], store: memoryStore() });
  const remote = createClient({ url: await orchestrator.listen({ port: 0 }) });
  const ended = await remote.start(done);
  await ended.result();
  const quiet = await remote.start(open);
  for (const client of [remote, orchestrator.client]) {
    const { signal } = new AbortController();
    for (let read = 0; read < 250; read += 1) {
      for await (const _ of client.handle(ended.id).stream()) void _;
      for await (const _ of client.handle(quiet.id).stream({ signal })) break;
      await assert.rejects(client.handle("nobody").stream()[Symbol.asyncIterator]().next(), { code: "INSTANCE_NOT_FOUND" });
    }
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});
