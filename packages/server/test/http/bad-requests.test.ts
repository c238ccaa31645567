/** Every bad input over every route, generated from the route table: a new route is covered by having a row in `samples.ts`. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type ErrorCode, errorCodes, type OperationId, pathOf, type Route, routes } from "@wovyr/sdk/internal";
import type { Served } from "./orchestrated.ts";
import { type Answer, rawRequest } from "./raw-request.ts";
import { type Sample, samples } from "./samples.ts";
import { seeded } from "./seeded.ts";

let served: Served;
const closers: (() => unknown)[] = [];
before(async () => {
  served = await seeded({ after: (close) => void closers.push(close as () => unknown) });
});
after(async () => {
  for (const close of closers) await close();
});

const all = Object.entries<Route>(routes).map(([id, route]) => ({ id, route, sample: samples[id as OperationId] }));
const plain = { "content-type": "application/json" };

function target(route: Route, sample: Sample, names: Readonly<Record<string, string>> = {}): string {
  return pathOf(route, { ...sample.names, ...names });
}

function send(
  route: Route,
  sample: Sample,
  over: { path?: string; headers?: Record<string, string>; body?: string | Uint8Array } = {},
): Promise<Answer> {
  const query = sample.query === undefined ? "" : `?${sample.query}`;
  const body = route.body ? (over.body ?? JSON.stringify(sample.body ?? {})) : sample.lines;
  return rawRequest(served.url, {
    method: route.method,
    path: over.path ?? target(route, sample) + query,
    headers: { ...(route.body && plain), ...(route.lines && { "content-type": "application/x-ndjson" }), ...over.headers },
    body,
  });
}

function assertProblem(answer: Answer, code: ErrorCode, what: string): void {
  const { status } = errorCodes[code];
  assert.equal(answer.json.code, code, `${what}: ${answer.status} ${answer.text}`);
  assert.equal(answer.status, status, what);
  assert.match(String(answer.headers["content-type"]), /^application\/problem\+json/);
  const { type, title, detail, retryable, errors } = answer.json;
  assert.equal(answer.json.status, status);
  assert.equal(type, `urn:wovyr:error:${code}`);
  assert.equal(retryable, errorCodes[code].retryable);
  assert.ok(typeof title === "string" && title.length > 3);
  assert.ok(typeof detail === "string" && detail.length > 10);
  if (errors !== undefined) for (const { pointer } of errors as { pointer: string }[]) assert.match(pointer, /^(\/.*)?$/);
}

test("every route takes its sample", async () => {
  for (const { id, route, sample } of all) {
    const answer = await send(route, sample);
    assert.equal(answer.status, sample.status, `${id}: ${answer.text}`);
  }
});

const badNames = [
  "..",
  ".",
  "%2e%2e",
  "a%00b",
  "%00",
  "a%2Fb",
  "a%20b",
  "%C3%A9",
  "%F0%9F%98%80",
  "a%5Cb",
  "x".repeat(256),
  "x".repeat(700),
  "x".repeat(2_700),
  "%F0%9F%98%80".repeat(255),
  "a;b",
  "a'b",
  "%25",
];

test("H077 H082 a name that may not be one is refused wherever it stands in a path", async () => {
  for (const { id, route, sample } of all) {
    for (const [parameter] of Object.entries(sample.names ?? {})) {
      for (const name of badNames)
        assertProblem(
          await send(route, sample, { path: target(route, sample, { [parameter]: name }) }),
          "INVALID_NAME",
          `${id} ${parameter}=${name}`,
        );
      const broken = await send(route, sample, { path: target(route, sample, { [parameter]: "%zz" }) });
      assertProblem(broken, "MALFORMED_REQUEST", `${id} ${parameter}`);
    }
  }
});

test("what does not exist is not found", async () => {
  for (const { id, route, sample } of all) {
    const missing = route.path.startsWith("/v1/batches") ? "BATCH_NOT_FOUND" : "INSTANCE_NOT_FOUND";
    if (sample.names?.id !== undefined)
      assertProblem(await send(route, sample, { path: target(route, sample, { id: "nobody" }) }), missing, id);
    else if (sample.names !== undefined && route.path.startsWith("/v1/workflows") && id !== "startBatch") {
      assertProblem(await send(route, sample, { path: target(route, sample, { name: "nobody" }) }), "WORKFLOW_NOT_FOUND", id);
    }
    assertProblem(await send(route, sample, { path: `${target(route, sample)}/more/and/more` }), "ROUTE_NOT_FOUND", id);
  }
  for (const path of ["/", "/v1", "/v1/", "/v2/instances", "/favicon.ico", "//", "/v1//instances", "/v1/instances/"]) {
    const answer = await rawRequest(served.url, { path });
    assert.ok(answer.status === 404 || answer.json.code === "INVALID_NAME", `${path} ${answer.text}`);
  }
});

test("a route that does not exist is not found, whatever its body", async () => {
  for (const body of ["{", "x".repeat(10_000)]) {
    for (const path of ["/nope", "/v1/nope"])
      assertProblem(await rawRequest(served.url, { method: "POST", path, headers: plain, body }), "ROUTE_NOT_FOUND", path);
  }
});

/** Whether a path is of a pattern: `/v1/instances/import` is one of an instance, too. */
const matches = (pattern: string, path: string) => new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);

test("a method that a path does not take is refused with those that it takes", async () => {
  for (const { id, route, sample } of all) {
    const taken = all.filter((other) => matches(other.route.path, target(route, sample))).map((other) => other.route.method);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      if (taken.includes(method as "GET")) continue;
      const answer = await rawRequest(served.url, { method, path: target(route, sample) });
      assertProblem(answer, "METHOD_NOT_ALLOWED", `${id} ${method}`);
      assert.deepEqual(String(answer.headers.allow).split(", ").sort(), [...new Set(taken)].sort(), id);
    }
  }
});

test("a query parameter that the route does not know is refused", async () => {
  for (const { id, route, sample } of all) {
    for (const query of ["tenant=B", "__proto__=1", "WAIT=1", "x"]) {
      const answer = await send(route, sample, { path: `${target(route, sample)}?${query}` });
      assertProblem(answer, "SCHEMA_VIOLATION", `${id} ?${query}`);
      assert.match(answer.text, /"pointer":"\/query\//);
    }
    assertProblem(await send(route, sample, { path: `${target(route, sample)}?a=%ff` }), "MALFORMED_REQUEST", id);
  }
});

const badQueries: readonly (readonly [parameter: string, values: readonly string[], code: ErrorCode])[] = [
  ["wait", ["soon", "-1", "1e9", "", "5+fortnights"], "INVALID_DURATION"],
  ["limit", ["0", "-1", "1.5", "100000", "ten", ""], "SCHEMA_VIOLATION"],
  ["fromSeq", ["0", "-1", "1.5", "one", "99999999999999999999"], "SCHEMA_VIOLATION"],
  ["runId", ["..", "a%00", "", "x".repeat(256)], "INVALID_NAME"],
  ["workflow", ["..", "a%00", ""], "INVALID_NAME"],
  ["cursor", ["", "x", "r1.", "r1.a%00", "x".repeat(3_000)], "INVALID_CURSOR"],
  ["format", ["svg", "JSON", ""], "SCHEMA_VIOLATION"],
  ["status", ["open", "completed", ""], "SCHEMA_VIOLATION"],
  ["startedAfter", ["yesterday", "2030-13-01", "5", ""], "INVALID_DURATION"],
  ["kind", ["Activity", "none", ""], "SCHEMA_VIOLATION"],
  ["name", ["..", "a%00", ""], "INVALID_NAME"],
  ["instanceId", ["..", "a%00", ""], "INVALID_NAME"],
  ["code", ["..", "a%00", ""], "INVALID_NAME"],
  ["since", ["yesterday", "5", ""], "INVALID_DURATION"],
  ["until", ["now", ""], "INVALID_DURATION"],
  ["startedBefore", ["2030-01-01T00:00:00", "now"], "INVALID_DURATION"],
];

test("a query parameter that cannot be read is refused, and so is one that is given twice", async () => {
  const covered = new Set<string>();
  for (const { id, route, sample } of all) {
    for (const [parameter, values, code] of badQueries) {
      if (route.query?.[parameter] === undefined) continue;
      covered.add(parameter);
      for (const value of values)
        assertProblem(
          await send(route, sample, { path: `${target(route, sample)}?${parameter}=${value}` }),
          code,
          `${id} ${parameter}=${value}`,
        );
      if (route.query[parameter]?.repeats) continue;
      assertProblem(
        await send(route, sample, { path: `${target(route, sample)}?${parameter}=1&${parameter}=1` }),
        "SCHEMA_VIOLATION",
        `${id} ${parameter}`,
      );
    }
  }
  const parameters = all.flatMap(({ route }) => Object.keys(route.query ?? {}));
  assert.deepEqual(
    [...new Set(parameters)].filter((parameter) => parameter !== "attributes" && !covered.has(parameter)),
    [],
    "parameters without bad values here",
  );
});

const withBody = all.filter(({ route }) => route.body !== undefined);

const badBodies: readonly (readonly [what: string, body: string | Uint8Array, headers: Record<string, string>, code: ErrorCode])[] = [
  ["half an object", "{", plain, "MALFORMED_REQUEST"],
  ["a trailing comma", '{"a":1,}', plain, "MALFORMED_REQUEST"],
  ["two objects", "{}{}", plain, "MALFORMED_REQUEST"],
  ["a byte order mark", "\ufeff{}", plain, "MALFORMED_REQUEST"],
  ["no UTF-8", Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), plain, "MALFORMED_REQUEST"],
  ["a typed text that is none", "~", { "content-type": "application/vnd.wovyr+json" }, "MALFORMED_REQUEST"],
  ["a typed text in plain JSON", '~[{"a":1},1]', plain, "MALFORMED_REQUEST"],
  ["a class that no text may forge", '~[["Process",1],{}]', { "content-type": "application/vnd.wovyr+json" }, "MALFORMED_REQUEST"],
  ["an array", "[]", plain, "SCHEMA_VIOLATION"],
  ["null", "null", plain, "SCHEMA_VIOLATION"],
  ["text", '"start"', plain, "SCHEMA_VIOLATION"],
  ["an unknown property", '{"__unknown":1}', plain, "SCHEMA_VIOLATION"],
  ["a prototype", '{"__proto__":{"id":"x"}}', plain, "SCHEMA_VIOLATION"],
  ["a form", "a=1", { "content-type": "application/x-www-form-urlencoded" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["plain text", "{}", { "content-type": "text/plain" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["no content type", "{}", { "content-type": "" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["a broken content type", "{}", { "content-type": "json" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["another charset", "{}", { "content-type": "application/json; charset=utf-16" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["a compressed body", "{}", { ...plain, "content-encoding": "gzip" }, "UNSUPPORTED_MEDIA_TYPE"],
  ["a body over the limit", "x".repeat(5 * 1024 * 1024), plain, "BODY_TOO_LARGE"],
];

for (const [what, body, headers, code] of badBodies) {
  test(`${what} as a body is refused with ${code}`, async () => {
    for (const { id, route, sample } of withBody) assertProblem(await send(route, sample, { body, headers }), code, `${id}: ${what}`);
  });
}

test("an idempotency key that may not be one is refused by everything that takes one", async () => {
  const changing = all.filter(({ route }) => route.changes);
  assert.ok(changing.length > 0);
  for (const { id, route, sample } of changing) {
    for (const key of ["", "a b", "x".repeat(256), "\u00e9"]) {
      const answer = await send(route, sample, { headers: { "idempotency-key": key } });
      assertProblem(answer, "MALFORMED_REQUEST", `${id} ${key}`);
      assert.match(answer.text, /"pointer":"\/headers\/idempotency-key"/);
    }
  }
});

const badStarts: readonly (readonly [what: string, body: object, code: ErrorCode, pointers: readonly string[]])[] = [
  ["an id with NUL", { id: "a\u0000" }, "INVALID_NAME", ["/id"]],
  ["an id of dots", { id: ".." }, "INVALID_NAME", ["/id"]],
  ["an id that is too long", { id: "x".repeat(256) }, "INVALID_NAME", ["/id"]],
  ["an id that is a number", { id: 5 }, "SCHEMA_VIOLATION", ["/id"]],
  [
    "several violations at once",
    { id: 5, onConflict: "maybe", foo: 1, "a/b~c": 1 },
    "SCHEMA_VIOLATION",
    ["/foo", "/a~1b~0c", "/id", "/onConflict"],
  ],
  [
    "attributes that cannot be searched",
    { attributes: { a: null, b: { c: 1 }, "d e": 1 } },
    "SCHEMA_VIOLATION",
    ["/attributes/a", "/attributes/b", "/attributes/d e"],
  ],
  ["an array as attributes", { attributes: [] }, "SCHEMA_VIOLATION", ["/attributes"]],
  ["a delay that is none", { delay: "soon" }, "INVALID_DURATION", ["/delay"]],
  ["a time limit that is none", { timeout: "soon" }, "INVALID_DURATION", ["/timeout"]],
  ["a time that is none", { startAt: "soon" }, "INVALID_DURATION", ["/startAt"]],
  ["a day without a time", { startAt: "2030-01-01" }, "INVALID_DURATION", ["/startAt"]],
  ["a time without a zone", { startAt: "2030-01-01T09:00:00" }, "INVALID_DURATION", ["/startAt"]],
  ["a delay and a time", { startAt: "2030-01-01T00:00:00Z", delay: 5 }, "INVALID_OPTION", []],
  ["an unknown version", { version: "99" }, "WORKFLOW_NOT_FOUND", []],
];

for (const [what, body, code, pointers] of badStarts) {
  test(`a start with ${what} is refused with ${code}`, async () => {
    const { startInstance } = routes;
    const answer = await send(startInstance, samples.startInstance, { body: JSON.stringify(body) });
    assertProblem(answer, code, what);
    const errors = (answer.json.errors ?? []) as { pointer: string; message: string }[];
    assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), [...pointers].sort());
    for (const { message } of errors) assert.match(message, /^((must|is) |(timeout: )?".*" (is|says) no )/);
  });
}

test("an input that does not fit its schema is refused with pointers into the body", async () => {
  const answer = await send(
    routes.startInstance,
    { ...samples.startInstance, names: { name: "order" } },
    { body: '{"input":{"id":5,"total":-1}}' },
  );
  assertProblem(answer, "INVALID_INPUT", "order");
  const pointers = (answer.json.errors as { pointer: string }[]).map(({ pointer }) => pointer);
  assert.deepEqual(pointers.sort(), ["/input/id", "/input/total"]);
});

test("a property that is missing from an input is told once", async () => {
  const answer = await send(routes.startInstance, { ...samples.startInstance, names: { name: "order" } }, { body: '{"input":{}}' });
  assertProblem(answer, "INVALID_INPUT", "order");
  const errors = answer.json.errors as { pointer: string; message: string }[];
  assert.deepEqual(
    errors.map(({ pointer, message }) => `${pointer} ${message}`),
    ["/input/id Expected required property", "/input/total Expected required property"],
  );
});

test("what is wrong with a query string is said of the parameter, and of nothing else", async () => {
  const said: readonly (readonly [query: string, text: RegExp])[] = [
    ["wait=-1", /^\/query\/wait -1 is negative; give /],
    ["wait=5%20parsecs", /^\/query\/wait "5 parsecs" .*; give /],
    ["runId=a%20b", /^\/query\/runId must be 1 to 255 characters /],
    ["wait=soon&runId=", /^\/query\/wait "soon" .* \(and 1 more\)$/],
  ];
  for (const [query, text] of said) {
    const answer = await rawRequest(served.url, { path: `/v1/instances/some/result?${query}` });
    assert.ok(answer.status === 400 || answer.status === 422, query);
    const [where, what] = String(answer.json.detail).split(" is not as it must be: ");
    assert.equal(where, "The query string");
    assert.match(String(what), text, query);
  }
  const listed = await rawRequest(served.url, { path: "/v1/instances?startedAfter=2026-01-01&startedBefore=yesterday" });
  assert.equal(listed.json.code, "INVALID_DURATION");
  assert.deepEqual(
    (listed.json.errors as { pointer: string }[]).map(({ pointer }) => pointer),
    ["/query/startedAfter", "/query/startedBefore"],
  );
  const array = await send(routes.startInstance, samples.startInstance, { body: "[]" });
  assert.equal(array.json.detail, "The body is not as it must be: must be an object");
});

test("what is wrong with a value of a body is told as a rule, and not as what it is for", async () => {
  const said: readonly (readonly [body: object, pointer: string, message: string])[] = [
    [{ max: 5_000 }, "/max", "must be a whole number from 1 to 1,000"],
    [{ queues: Array.from({ length: 64 }, () => "q") }, "/queues", "must be a list of at most 63 items"],
    [{ queues: "q" }, "/queues", "must be a list of at most 63 items"],
    [
      { lease: true },
      "/lease",
      "must be a duration: milliseconds, a text such as `90s`, `3 days` or `1h30m`, or ISO 8601 such as `P1DT2H`",
    ],
    [{ registered: 1 }, "/registered", "must be true or false"],
  ];
  for (const [body, pointer, message] of said) {
    const answer = await send(routes.pollTasks, samples.pollTasks, { body: JSON.stringify({ worker: "w1", ...body }) });
    assert.deepEqual(answer.json.errors, [{ pointer, message }]);
  }
});

const badOperations: readonly (readonly [operation: unknown, pointer: string, text: RegExp])[] = [
  [{ type: "explode" }, "/operation/type", /^must be one of cancel, terminate, pause, resume, wake, send, reset, delete$/],
  [{}, "/operation/type", /^must be one of cancel, /],
  [{ type: "send" }, "/operation/event", /^is missing$/],
  [{ type: "reset", to: "middle" }, "/operation/to", /^must be the number of the last event to keep/],
  [{ type: "cancel", mode: "soft" }, "/operation/mode", /^must be one of graceful, immediate, compensate$/],
  [{ type: "delete", reason: "x" }, "/operation/reason", /^is no property that may stand here$/],
  ["cancel", "/operation", /^must be an operation/],
];

test("what is wrong with the operation of a batch is told where it is, with the operations that there are", async () => {
  for (const [operation, pointer, text] of badOperations) {
    const answer = await send(routes.startBatchOperation, samples.startBatchOperation, { body: JSON.stringify({ operation, filter: {} }) });
    assertProblem(answer, "SCHEMA_VIOLATION", JSON.stringify(operation));
    const errors = answer.json.errors as { pointer: string; message: string }[];
    assert.deepEqual(
      errors.map((each) => each.pointer),
      [pointer],
      JSON.stringify(errors),
    );
    assert.match(errors[0]?.message ?? "", text);
  }
});

const badBatches: readonly (readonly [what: string, body: object, pointers: readonly string[]])[] = [
  ["no items", { items: [] }, ["/items"]],
  ["more than 1,000 items", { items: Array.from({ length: 1_001 }, (_, at) => ({ id: `i${at}` })) }, ["/items"]],
  ["an item without an id or a key", { items: [{ id: "a1" }, { input: 1 }] }, ["/items/1"]],
  ["an item that is none", { items: [{ id: "a1" }, 5, { id: "a2", foo: 1 }] }, ["/items/1", "/items/2/foo"]],
];

for (const [what, body, pointers] of badBatches) {
  test(`a batch with ${what} is refused whole`, async () => {
    const answer = await send(routes.startBatch, samples.startBatch, { body: JSON.stringify(body) });
    assertProblem(answer, "SCHEMA_VIOLATION", what);
    assert.deepEqual((answer.json.errors as { pointer: string }[]).map(({ pointer }) => pointer).sort(), pointers);
  });
}

test("a value that is nested a million deep is refused, and costs nobody else", async () => {
  const deep = "[".repeat(1_000_000) + "]".repeat(1_000_000);
  const post = (body: string, type = "application/json") =>
    send(routes.startInstance, samples.startInstance, { body, headers: { "content-type": type } });
  assertProblem(await post(`{"input":${deep}}`), "PAYLOAD_UNSERIALIZABLE", "plain");
  assertProblem(await post(`{"input":${deep}}`, "application/vnd.wovyr+json"), "PAYLOAD_UNSERIALIZABLE", "typed");
  assertProblem(await post(`{"memo":{"a":${deep}}}`), "PAYLOAD_UNSERIALIZABLE", "memo");
  assertProblem(await post(`{"attributes":{"a":${deep}}}`), "SCHEMA_VIOLATION", "attributes");
  assertProblem(await post(deep), "SCHEMA_VIOLATION", "the body itself");
  const rich = `~[${Array.from({ length: 200_000 }, (_, at) => `[${at + 1}]`).join(",")},1]`;
  assertProblem(await post(rich, "application/vnd.wovyr+json"), "MALFORMED_REQUEST", "rich");
  assertProblem(await post('~[{"input":1},["Map",2,2],["Map",1,1]]', "application/vnd.wovyr+json"), "MALFORMED_REQUEST", "a cycle");
});
