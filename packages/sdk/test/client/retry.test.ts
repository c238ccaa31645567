import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { delayAfter, retryOf } from "../../src/client/retry.ts";
import { createClient } from "../../src/client.ts";
import type { Workflow } from "../../src/define/workflow.ts";
import { workflow } from "../../src/define/workflow.ts";
import { ApiError, PayloadError, WovyrError } from "../../src/model/errors.ts";
import { loopback, problem, send } from "./loopback.ts";

const echo: Workflow<unknown, unknown> = workflow("echo", async function* (input: unknown) {
  return input;
});
const quick = { initialDelay: 1, maxDelay: 5 };
const started = { id: "a", runId: "r1", status: "Running" };

test("a start is repeated with the same key after 429, 503 and a connection that closed behind the commit", async (context) => {
  const { url, seen } = await loopback(context, (response, times) => {
    if (times === 1) problem(response, 429, "OVERLOADED", true, { "retry-after": "0" });
    else if (times === 2) send(response, 503, "<html>gateway</html>");
    else if (times === 3) response.destroy();
    else send(response, 201, started);
  });
  const handle = await createClient({ url, retry: quick }).start(echo, { n: 1 }, { id: "a" });
  assert.deepEqual([handle.id, handle.runId], ["a", "r1"]);
  assert.equal(seen.length, 4);
  const [key, ...others] = seen.map(({ headers }) => headers["idempotency-key"]);
  assert.ok(key !== undefined && key.length >= 16);
  assert.deepEqual(new Set(others), new Set([key]));
  assert.equal(new Set(seen.map(({ body, path }) => path + body)).size, 1);
});

test("two starts without a key of their own do not share one, and a key that is given is used", async (context) => {
  const { url, seen } = await loopback(context, (response) => send(response, 201, started));
  const client = createClient({ url });
  await client.start(echo, 1);
  await client.start(echo, 1);
  await client.start(echo, 1, { idempotencyKey: "mine" });
  const keys = seen.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], "mine");
});

test("the items of a batch keep their keys from try to try", async (context) => {
  const { url, seen } = await loopback(context, (response, times, { body }) => {
    if (times < 3) return times === 1 ? problem(response, 429, "OVERLOADED", true, { "retry-after": "0" }) : void response.destroy();
    const { items } = JSON.parse(body) as { items: unknown[] };
    send(response, 200, { items: items.map((_, at) => ({ ok: true, ...started, id: `i${at}`, created: true, replayed: false })) });
  });
  const starts = Array.from({ length: 500 }, (_, at) => ({ input: at, ...(at % 2 === 0 && { idempotencyKey: `key-${at}` }) }));
  const outcomes = await createClient({ url, retry: quick }).startBatch(echo, starts);
  assert.equal(outcomes.length, 500);
  assert.ok(outcomes.every(({ ok }) => ok));
  const keys = seen.map(({ body }) =>
    (JSON.parse(body) as { items: { idempotencyKey: string }[] }).items.map((item) => item.idempotencyKey),
  );
  assert.equal(keys.length, 3);
  assert.deepEqual(keys[1], keys[0]);
  assert.deepEqual(keys[2], keys[0]);
  assert.equal(new Set(keys[0]).size, 500);
  assert.equal(keys[0]?.[2], "key-2");
});

test("what will not pass is not tried again", async (context) => {
  const { url, seen } = await loopback(context, (response) => problem(response, 409, "INSTANCE_EXISTS", false));
  const error = await createClient({ url, retry: quick })
    .start(echo, 1)
    .catch((thrown: unknown) => thrown);
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.code, error.status, error.retryable, error.message], ["INSTANCE_EXISTS", 409, false, "it is INSTANCE_EXISTS"]);
  assert.equal(seen.length, 1);
});

test("tries are bounded in number, and the last error is the one that is thrown", async (context) => {
  const { url, seen } = await loopback(context, (response) => problem(response, 503, "SHUTTING_DOWN", true, { "retry-after": "0" }));
  await assert.rejects(
    createClient({ url, retry: { ...quick, maxAttempts: 3 } })
      .handle("a")
      .describe(),
    { code: "SHUTTING_DOWN", status: 503 },
  );
  assert.equal(seen.length, 3);
});

test("tries are bounded in time: a wait that would end too late is not begun", async (context) => {
  const { url, seen } = await loopback(context, (response) => problem(response, 429, "OVERLOADED", true, { "retry-after": "3600" }));
  const error = await createClient({ url })
    .handle("a")
    .describe()
    .catch((thrown: unknown) => thrown);
  assert.ok(error instanceof ApiError);
  assert.equal(error.retryAfter, 3_600_000);
  assert.equal(seen.length, 1);
});

test("a server that is not there is named, with the reason", async () => {
  const port = await freePort();
  const client = createClient({ url: `http://127.0.0.1:${port}/wovyr/`, retry: { ...quick, maxAttempts: 2 } });
  const error = await client
    .handle("a")
    .describe()
    .catch((thrown: unknown) => thrown);
  assert.ok(error instanceof ApiError);
  assert.equal(error.code, "UNREACHABLE");
  assert.match(
    error.message,
    new RegExp(`^http://127\\.0\\.0\\.1:${port}/wovyr/v1/instances/a cannot be reached \\(try 2\\): .*ECONNREFUSED`),
  );
  assert.ok(error.cause instanceof Error);
});

test("a call that waits is not lost when the server is away for longer than other calls are tried", async (context) => {
  let asked = 0;
  const { url } = await loopback(context, (response) => {
    asked += 1;
    if (asked <= 8) send(response, 503, {});
    else send(response, 404, { code: "INSTANCE_NOT_FOUND", detail: "it is not there", retryable: false });
  });
  const handle = createClient({ url, retry: { initialDelay: 1, maxDelay: 1 } }).handle("a");
  await assert.rejects(handle.result(), { code: "INSTANCE_NOT_FOUND" });
  assert.equal(asked, 9);
  asked = 0;
  await assert.rejects(handle.describe(), {
    code: "UNREACHABLE",
    message: `${url}/v1/instances/a answered with status 503, and not as a Wovyr server does`,
  });
  assert.equal(asked, 5);
  asked = 0;
  await assert.rejects(
    createClient({ url, retry: { initialDelay: 1, maxAttempts: 2 } })
      .handle("a")
      .result(),
    { code: "UNREACHABLE" },
  );
  assert.equal(asked, 2);
});

test("a server that does not answer is given up", async (context) => {
  const { url, seen } = await loopback(context, () => undefined);
  const client = createClient({ url, requestTimeout: 30, retry: { ...quick, maxAttempts: 2 } });
  await assert.rejects(client.handle("a").describe(), { code: "UNREACHABLE", message: /no answer in time/ });
  assert.equal(seen.length, 2);
});

test("something that is no Wovyr server is told as such, and not asked again", async (context) => {
  const { url, seen } = await loopback(context, (response) => send(response, 200, "<!doctype html>", { "content-type": "text/html" }));
  await assert.rejects(createClient({ url, retry: quick }).handle("a").describe(), {
    code: "UNREACHABLE",
    retryable: false,
    message: /did not answer as a Wovyr server does/,
  });
  assert.equal(seen.length, 1);
});

test("an abort ends a wait for the result at once, also between two tries", async (context) => {
  const reason = new Error("changed my mind");
  const controller = new AbortController();
  const { url } = await loopback(context, (response, times) => {
    if (times === 1) problem(response, 503, "NOT_OWNER", true, { "retry-after": "20" });
    setImmediate(() => controller.abort(reason));
  });
  await assert.rejects(createClient({ url }).handle("a").result({ signal: controller.signal }), reason);
  const aborted = AbortSignal.abort(reason);
  await assert.rejects(createClient({ url }).handle("a").result({ signal: aborted }), reason);
});

test("an abort ends a request that is under way", async (context) => {
  const reason = new Error("changed my mind");
  const controller = new AbortController();
  const { url } = await loopback(context, () => controller.abort(reason));
  await assert.rejects(createClient({ url }).handle("a").result({ signal: controller.signal }), reason);
});

test("what cannot be written is refused before anything is sent", async (context) => {
  const { url, seen } = await loopback(context, (response) => send(response, 201, started));
  const client = createClient({ url });
  const unserializable = await client.start(echo, { items: [1, { run: () => 1 }] }).catch((thrown: unknown) => thrown);
  assert.ok(unserializable instanceof PayloadError);
  assert.match(unserializable.path ?? "", /items\[1\]\.run$/);
  for (const id of ["..", "a/b", "", "a\u0000"]) {
    assert.throws(() => client.handle(id), { code: "INVALID_NAME" });
  }
  await assert.rejects(client.start(echo, 1, { idempotencyKey: "a b" }), { code: "INVALID_OPTION" });
  await assert.rejects(client.start(echo, 1, { startAt: "soon" }), { code: "INVALID_DURATION" });
  await assert.rejects(client.start(echo, 1, { ...({ prio: 1 } as object) }), { code: "INVALID_OPTION", message: /prio/ });
  assert.equal(seen.length, 0);
});

test("a client is refused a URL that cannot be one", () => {
  for (const url of ["", "localhost:7420", "ftp://a", "/v1"])
    assert.throws(
      () => createClient({ url }),
      (error) => error instanceof WovyrError && error.code === "INVALID_OPTION",
    );
});

test("a client is refused a key that no header can carry, and a fetch that is none", () => {
  for (const wrong of [{ apiKey: "k\n" }, { apiKey: "" }, { apiKey: null }, { fetch: 5 }])
    assert.throws(() => createClient({ url: "http://localhost:1", ...wrong } as never), { code: "INVALID_OPTION" }, JSON.stringify(wrong));
});

test("a client is refused a time that no timer can have", () => {
  for (const requestTimeout of [0, 2 ** 31])
    assert.throws(() => createClient({ url: "http://localhost:1", requestTimeout }), { code: "INVALID_OPTION", message: /requestTimeout/ });
});

test("the key of the API is sent with every request", async (context) => {
  const { url, seen } = await loopback(context, (response) => send(response, 202, { id: "a" }));
  await createClient({ url, apiKey: "secret" }).handle("a").terminate();
  assert.equal(seen[0]?.headers.authorization, "Bearer secret");
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

test("H066 H067 the wait for the next try is finite and stays within its cap, however long nothing answers", () => {
  for (const initialDelay of [0, 1, 100, 5_000])
    for (const tries of [1, 2, 60, 61, 1_023, 1_024, 1_025, 5_000, 2 ** 31]) {
      const delay = delayAfter(retryOf({ initialDelay, maxDelay: "5s", maxAttempts: 2 ** 31 }), tries, undefined);
      assert.ok(delay >= 0 && delay <= 5_000, `${delay} after ${tries} tries from ${initialDelay}`);
      assert.ok(Number.isFinite(delayAfter(retryOf({ initialDelay }), tries, 60_000)));
    }
});
