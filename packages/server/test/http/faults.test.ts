/** What the server answers when what is behind it fails, and how it goes down. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ApiError, type Operations, type ResultResponse, WovyrError } from "@wovyr/sdk/internal";
import { createHttpServer } from "../../src/http/create-http-server.ts";
import { scripted } from "./scripted-operations.ts";

type Line = { readonly message: string; readonly data?: { readonly error?: Error } | undefined };

async function listening(context: TestContext, script: Partial<Operations>) {
  const lines: Line[] = [];
  const log = { error: (message: string, data?: object) => void lines.push({ message, data }) };
  const app = createHttpServer({ operations: () => scripted(script), log });
  context.after(() => app.close());
  return { app, lines, url: await app.listen({ host: "127.0.0.1", port: 0 }) };
}

test("a fault of ours is a 500 that tells nothing, and is logged with its stack", async (context) => {
  const { url, lines } = await listening(context, {
    describe: () => {
      throw new TypeError("secret is not a function");
    },
  });
  const response = await fetch(`${url}/v1/instances/a?runId=r`);
  assert.equal(response.status, 500);
  const text = await response.text();
  assert.doesNotMatch(text, /secret|TypeError|\.ts/);
  assert.match(JSON.parse(text).instance, /^urn:wovyr:request:/);
  assert.equal(lines.length, 1);
  assert.equal(lines[0]?.message, "GET /v1/instances/a failed");
  assert.match(lines[0]?.data?.error?.stack ?? "", /secret is not a function\n +at /);
});

test("what passes by itself says when to come back, and is not logged as a fault", async (context) => {
  const { url, lines } = await listening(context, {
    describe: () => Promise.reject(new WovyrError("connect ECONNREFUSED 10.0.0.3", { code: "STORE_UNAVAILABLE" })),
    history: () => Promise.reject(new ApiError("slow down", { code: "OVERLOADED", retryAfter: 2_400 })),
  });
  const unavailable = await fetch(`${url}/v1/instances/a`);
  assert.deepEqual([unavailable.status, unavailable.headers.get("retry-after")], [503, "1"]);
  assert.doesNotMatch(await unavailable.text(), /ECONN/);
  const overloaded = await fetch(`${url}/v1/instances/a/history`);
  assert.deepEqual([overloaded.status, overloaded.headers.get("retry-after")], [429, "3"]);
  assert.equal(((await overloaded.json()) as { detail: string }).detail, "slow down");
  assert.deepEqual(lines, []);
});

test("it is ready when what is behind it is, and says why when not", async (context) => {
  let health: () => Promise<{ ready: boolean; reason?: string }> = async () => ({ ready: true });
  const { url } = await listening(context, { health: () => health() });
  const ready = async () => {
    const response = await fetch(`${url}/health/ready`);
    return [response.status, await response.json()];
  };
  assert.deepEqual(await ready(), [200, { ready: true }]);
  health = async () => ({ ready: false, reason: "the store cannot be reached" });
  assert.deepEqual(await ready(), [503, { ready: false, reason: "the store cannot be reached" }]);
  health = () => Promise.reject(new Error("secret"));
  assert.deepEqual(await ready(), [503, { ready: false, reason: "the orchestrator does not answer" }]);
  assert.equal((await fetch(`${url}/health/live`)).status, 200);
});

/** A result that is waited for until the caller gives up, and a promise of the wait's beginning. */
function pending() {
  let began = () => {};
  const waiting = new Promise<void>((resolve) => {
    began = resolve;
  });
  let open = 0;
  const result: Operations["result"] = async (id, { wait = 0, signal } = {}): Promise<ResultResponse> => {
    if (wait === 0) return { id, runId: "r", status: "Waiting" };
    open += 1;
    began();
    try {
      return await new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    } finally {
      open -= 1;
    }
  };
  return { result, waiting, open: () => open };
}

/** Something that begins, and ends when the test lets it. */
function gated() {
  let reach = () => {};
  let open = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const pass = () => {
    reach();
    return opened;
  };
  return { pass, reached, open: () => open() };
}

test("a server that closes answers who is waiting with 202, and lets a request under way end", async (context) => {
  const { result, waiting, open } = pending();
  const gate = gated();
  const { app, url } = await listening(context, {
    result,
    start: async () => {
      await gate.pass();
      return { id: "a", runId: "r", status: "Running", created: true, replayed: false };
    },
  });
  const poll = fetch(`${url}/v1/instances/a/result?wait=60s`);
  const start = fetch(`${url}/v1/workflows/w/instances`, { method: "POST" });
  await Promise.all([waiting, gate.reached]);
  const closed = app.close();
  const polled = await poll;
  assert.deepEqual([polled.status, await polled.json()], [202, { id: "a", runId: "r", status: "Waiting" }]);
  gate.open();
  assert.equal((await start).status, 201);
  await closed;
  assert.equal(open(), 0);
});

test("a start that waits is answered with what it started when the server closes", async (context) => {
  const gate = gated();
  const { app, url } = await listening(context, {
    start: async ({ signal }) => {
      const ended = new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
      await gate.pass();
      await ended;
      return { id: "a", runId: "r", status: "Waiting", created: true, replayed: false };
    },
  });
  const start = fetch(`${url}/v1/workflows/w/instances?wait=60s`, { method: "POST" });
  await gate.reached;
  gate.open();
  await app.close();
  const response = await start;
  assert.deepEqual([response.status, await response.json()], [201, { id: "a", runId: "r", status: "Waiting" }]);
});

test("a request that comes while the server closes is sent away with 503", async (context) => {
  const { result, waiting } = pending();
  const gate = gated();
  const { app, url } = await listening(context, {
    result,
    history: async () => {
      await gate.pass();
      return { runId: "r", items: [] };
    },
  });
  const poll = fetch(`${url}/v1/instances/a/result?wait=60s`);
  const slow = fetch(`${url}/v1/instances/a/history`);
  await Promise.all([waiting, gate.reached]);
  const closed = app.close();
  await (await poll).text();
  const late = await fetch(`${url}/v1/instances/a`);
  assert.deepEqual([late.status, ((await late.json()) as { code: string }).code], [503, "SHUTTING_DOWN"]);
  assert.equal(late.headers.get("retry-after"), "1");
  assert.equal((await fetch(`${url}/health/live`)).status, 200);
  gate.open();
  await (await slow).text();
  await closed;
});

test("who goes away while waiting leaves nothing behind", async (context) => {
  const { result, waiting, open } = pending();
  const { url } = await listening(context, { result });
  const controller = new AbortController();
  const poll = fetch(`${url}/v1/instances/a/result?wait=60s`, { signal: controller.signal });
  await waiting;
  controller.abort();
  await assert.rejects(poll);
  while (open() > 0) await new Promise<void>((resolve) => setImmediate(resolve));
});

test("there is a bound on how many wait", async (context) => {
  const { result, waiting } = pending();
  const app = createHttpServer({ operations: () => scripted({ result }), maxWaiting: 1 });
  context.after(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const first = fetch(`${url}/v1/instances/a/result?wait=60s`);
  await waiting;
  const second = await fetch(`${url}/v1/instances/a/result?wait=60s`);
  assert.deepEqual([second.status, second.headers.get("retry-after")], [429, "1"]);
  assert.equal((await fetch(`${url}/v1/instances/a/result`)).status, 202);
  await app.close();
  assert.equal((await first).status, 202);
});
