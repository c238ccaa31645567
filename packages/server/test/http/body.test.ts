import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import type { StartRequest } from "@wovyr/sdk/internal";
import { createHttpServer } from "../../src/http/create-http-server.ts";
import { scripted } from "./scripted-operations.ts";

const bodyLimit = 1_024 * 1_024;
const start = "/v1/workflows/w/instances";

async function listening(context: TestContext): Promise<{ url: string; port: number; starts: StartRequest[] }> {
  const starts: StartRequest[] = [];
  const operations = scripted({
    start: async (request) => {
      starts.push(request);
      return { id: "a", runId: "r", status: "Running", created: true, replayed: false };
    },
  });
  const app = createHttpServer({ operations: () => operations, bodyLimit });
  context.after(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, port: Number(new URL(url).port), starts };
}

/** A start whose body has exactly so many bytes. */
function bodyOf(length: number): string {
  const empty = JSON.stringify({ input: "" });
  return JSON.stringify({ input: "x".repeat(length - empty.length) });
}

test("H079 a body of the limit is read, one byte more and fifty times more are answered with 413 on a connection that stays", async (context) => {
  const { url, starts } = await listening(context);
  for (const [length, status] of [
    [bodyLimit - 1, 201],
    [bodyLimit, 201],
    [bodyLimit + 1, 413],
    [50 * bodyLimit, 413],
    [100, 201],
  ] as const) {
    const response = await fetch(url + start, { method: "POST", headers: { "content-type": "application/json" }, body: bodyOf(length) });
    assert.equal(response.status, status, `${length} bytes`);
    const answer = (await response.json()) as { code?: string; detail?: string };
    if (status === 413) assert.deepEqual([answer.code, answer.detail], ["BODY_TOO_LARGE", `The body is longer than ${bodyLimit} bytes`]);
    assert.equal(response.headers.get("connection"), "keep-alive");
  }
  assert.equal(starts.length, 3);
});

test("H079 a body that is too large is answered also where its length was not announced", async (context) => {
  const { url } = await listening(context);
  const chunk = new Uint8Array(bodyLimit / 4).fill(32);
  let left = 40;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- > 0) controller.enqueue(chunk);
      else controller.close();
    },
  });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body, duplex: "half" };
  const response = await fetch(url + start, init as RequestInit);
  assert.equal(response.status, 413);
});

test("H081 keys that could reach a prototype are data, and nothing is polluted", async (context) => {
  const { url, starts } = await listening(context);
  const input = '{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"list":[{"__proto__":{"x":1}}]}';
  const body = `{"id":"a","input":${input},"attributes":{"__proto__":"x","constructor":"x"},"memo":{"__proto__":{"x":1}}}`;
  for (const type of ["application/json", "application/vnd.wovyr+json"]) {
    const response = await fetch(url + start, { method: "POST", headers: { "content-type": type }, body });
    assert.equal(response.status, 201, await response.text());
    const request = starts.pop();
    assert.equal(JSON.stringify(request?.input), input);
    assert.deepEqual(Object.entries(request?.attributes ?? {}), [
      ["__proto__", "x"],
      ["constructor", "x"],
    ]);
    assert.deepEqual(Object.keys(request?.memo ?? {}), ["__proto__"]);
    assert.equal(Reflect.get({}, "x"), undefined);
  }
});

test("a prototype as a key of the body itself is one more unknown property", async (context) => {
  const { url } = await listening(context);
  for (const body of ['{"__proto__":{"id":"a"}}', '{"constructor":1}', '{"toString":1}']) {
    const response = await fetch(url + start, { method: "POST", headers: { "content-type": "application/json" }, body });
    assert.equal(response.status, 422);
  }
});

test("H077 text keeps every character, lone surrogates and NUL included", async (context) => {
  const { url, starts } = await listening(context);
  const input = { "\u0000": "a\u0000b", pair: "😀", lone: "\ud800" };
  await fetch(url + start, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input }) });
  assert.deepEqual(starts[0]?.input, input);
});

test("a typed body may hold a Map or a Date as a value, but not where the schema says object", async (context) => {
  const { url, starts } = await listening(context);
  const post = (body: string) => fetch(url + start, { method: "POST", headers: { "content-type": "application/vnd.wovyr+json" }, body });
  const { encodePayload } = await import("@wovyr/sdk/internal");
  const input = new Map([["at", new Date(0)]]);
  assert.equal((await post(encodePayload({ input }))).status, 201);
  assert.deepEqual(starts[0]?.input, input);
  for (const value of [
    new Map([["id", "a"]]),
    new Date(0),
    { attributes: new Map() },
    { memo: new Date(0) },
    { attributes: { a: new Date(0) } },
    { id: undefined, memo: new Set([1]) },
  ]) {
    const response = await post(encodePayload(value));
    assert.equal(response.status, 422, JSON.stringify(value));
  }
  assert.equal((await post("~[1,2,")).status, 400);
  assert.equal((await post('~[["Error",1],{"constructor":2},"x"]')).status, 400);
});

test("an upload that breaks off starts nothing, and the server goes on", async (context) => {
  const { url, port, starts } = await listening(context);
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST ${start} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"input":`);
  await new Promise<void>((resolve) => socket.write(" ", () => resolve()));
  socket.resetAndDestroy();
  const response = await fetch(url + start, { method: "POST" });
  assert.equal(response.status, 201);
  assert.equal(starts.length, 1);
});

test("what is no HTTP is told so as a problem", async (context) => {
  const { port } = await listening(context);
  const cases = [
    ["HELO example\r\n\r\n", /^HTTP\/1\.1 400 Bad Request\r\n(?:.|\s)*"code":"MALFORMED_REQUEST"/],
    [`GET /health/live HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 (?:.|\s)*"status":431/],
  ] as const;
  for (const [request, expected] of cases) {
    const socket = connect(port, "127.0.0.1");
    socket.write(request);
    let answer = "";
    for await (const chunk of socket) answer += String(chunk);
    assert.match(answer, expected);
    assert.match(answer, /application\/problem\+json/);
  }
});
