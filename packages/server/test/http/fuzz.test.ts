/** Requests made of each route's own schemas, well-formed and almost so: never a 5xx, every answer as the table says. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { decodePayload, encodePayload, errorCodes, type OperationId, ProblemSchema, pathOf, type Route, routes } from "@wovyr/sdk/internal";
import fc from "fast-check";
import { errorsOf } from "../../src/http/openapi.ts";
import { echo, type Served } from "./orchestrated.ts";
import { samples } from "./samples.ts";
import { closed, fitting } from "./schema-arbitrary.ts";
import { seeded } from "./seeded.ts";

let served: Served;
const closers: (() => unknown)[] = [];
before(async () => {
  served = await seeded({ after: (close) => void closers.push(close as () => unknown) });
  const run = await served.local.start(echo, { at: new Date(0) });
  await run.result();
  for await (const line of run.export()) exported.push(line);
  await run.delete();
});
after(async () => {
  for (const close of closers) await close();
});

/** Lines of a run that is not there any more. */
const exported: string[] = [];

const problemCheck = TypeCompiler.Compile(closed(ProblemSchema));

const known = ["completed", "failed", "terminated", "waiting", "waiting2", "retrying"];
const ended = ["completed", "failed", "terminated"];
const anyText = fc.string({ unit: "binary", maxLength: 12 });

function namesOf(operationId: OperationId, route: Route): fc.Arbitrary<Record<string, string>> {
  const parameters = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  // A stream of an open run would not end; what is deleted would be missing.
  const ids = operationId === "streamInstance" ? ended : operationId === "deleteInstance" ? ["removable", "waiting"] : known;
  const unknownId = fc.stringMatching(/^[a-z0-9_.:~@-]{1,9}$/).map((id) => `no-${id}`);
  const word = fc.stringMatching(/^[a-z0-9_.:~@-]{1,9}$/);
  const one = (parameter: string) =>
    parameter === "id"
      ? fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom(...ids) },
          unknownId,
          anyText.map((text) => `\u0000${text}`),
        )
      : fc.oneof({ weight: 4, arbitrary: fc.constantFrom("echo", "order", "failing", "approved") }, word, anyText);
  return fc.record(Object.fromEntries(parameters.map((parameter) => [parameter, one(parameter)])), { noNullPrototype: true });
}

const values: Readonly<Record<string, fc.Arbitrary<string>>> = {
  wait: fc.constantFrom("0", "1", "5ms", "PT0.005S", "soon", "-1"),
  attributes: fc.constantFrom("red", "3", "true", '"3"', '"', "1e999", ""),
};

function queryOf(route: Route): fc.Arbitrary<string> {
  const parameters = Object.entries(route.query ?? {}).map(([name, { schema, prefix }]) => {
    const value = values[name] ?? fitting(schema.type === "array" ? schema.items : schema).map(String);
    return fc
      .oneof({ weight: 5, arbitrary: value }, anyText)
      .map((text) => `${prefix === undefined ? name : `${prefix}color`}=${encodeURIComponent(text)}`);
  });
  const unknown = anyText.map((text) => `${encodeURIComponent(text)}=1`);
  return fc
    .subarray([...parameters, unknown].map((_, at) => at))
    .chain((chosen) =>
      fc
        .tuple(
          ...chosen
            .filter((at) => at < parameters.length || chosen.length === 1)
            .map((at) => [...parameters, unknown][at] as fc.Arbitrary<string>),
        )
        .map((parts) => parts.join("&")),
    );
}

function bodyOf(operationId: OperationId, route: Route): fc.Arbitrary<{ body: string; type: string } | undefined> {
  if (route.lines !== undefined) return linesLike().map((lines) => ({ body: lines, type: "application/x-ndjson" }));
  if (route.body === undefined) return fc.constant(undefined);
  const fits = fitting(route.body.schema);
  const almost = fc.tuple(fits, fc.string(), fc.jsonValue()).map(([value, key, extra]) => ({ ...(value as object), [key]: extra }));
  const sample = JSON.stringify(samples[operationId].body ?? {});
  return fc.oneof(
    fc.constant({ body: sample, type: "application/json" }),
    { weight: 4, arbitrary: fits.map((value) => ({ body: JSON.stringify(value), type: "application/json" })) },
    { weight: 2, arbitrary: fits.map((value) => ({ body: encodePayload(value), type: "application/vnd.wovyr+json" })) },
    almost.map((value) => ({ body: JSON.stringify(value), type: "application/json" })),
    fc.anything({ withDate: true, withMap: true, withSet: true, withBigInt: true, withTypedArray: true, withSparseArray: true }).map(typed),
    fc.jsonValue().map((value) => ({ body: JSON.stringify(value), type: "application/json" })),
    fc.string({ unit: "binary" }).map((body) => ({ body, type: "application/vnd.wovyr+json" })),
  );
}

/** What was exported, whole, with a line that is missing, said twice or broken, or something else. */
function linesLike(): fc.Arbitrary<string> {
  const whole = fc.constant(exported.join("\n"));
  const bent = fc.tuple(fc.nat(exported.length - 1), fc.nat(), fc.string(), fc.boolean()).map(([line, at, text, whole]) => {
    const lines = [...exported];
    const old = lines[line] ?? "";
    const place = at % (old.length + 1);
    lines.splice(line, 1, ...(whole ? [text] : [old.slice(0, place) + text + old.slice(place)]));
    return lines.join("\n");
  });
  return fc.oneof(whole, { weight: 3, arbitrary: bent }, fc.string({ unit: "binary" }));
}

function typed(value: unknown): { body: string; type: string } {
  try {
    return { body: encodePayload({ input: value, payload: value }), type: "application/vnd.wovyr+json" };
  } catch {
    return { body: "{}", type: "application/json" };
  }
}

const checks = new Map<TSchema, TypeCheck<TSchema>>();

function checkOf(schema: TSchema): TypeCheck<TSchema> {
  const check = checks.get(schema) ?? TypeCompiler.Compile(closed(schema));
  checks.set(schema, check);
  return check;
}

function assertFits(check: TypeCheck<TSchema>, value: unknown, what: string): void {
  if (check.Check(value)) return;
  const [first] = [...check.Errors(value)];
  assert.fail(`${what}: ${first?.path} ${first?.message}: ${JSON.stringify(value).slice(0, 1_000)}`);
}

// Before anything is deleted that the samples name.
test("what a typed answer says, a plain one says in JSON", async () => {
  for (const [id, route] of Object.entries<Route>(routes)) {
    const sample = samples[id as OperationId];
    if (sample.status !== 200 || route.method !== "GET" || route.answers[200]?.schema === undefined || sample.query?.includes("wait"))
      continue;
    const url = pathOf(route, sample.names ?? {}) + (sample.query === undefined ? "" : `?${sample.query}`);
    const plain = await served.orchestrator.http.inject({ url });
    const kept = await served.orchestrator.http.inject({ url, headers: { accept: "application/vnd.wovyr+json" } });
    assert.equal(kept.headers["content-type"], "application/vnd.wovyr+json; charset=utf-8", `${id}: ${kept.body}`);
    const { toPlainJson } = await import("@wovyr/sdk/internal");
    assert.deepEqual(toPlainJson(decodePayload(kept.body)), JSON.parse(plain.body), id);
  }
});

for (const [id, route] of Object.entries<Route>(routes)) {
  const operationId = id as OperationId;

  test(`${operationId} answers whatever it is asked as its row says`, async () => {
    const statuses = new Set<number>();
    const request = fc.record({
      names: fc.oneof({ weight: 3, arbitrary: fc.constant({ ...samples[operationId].names }) }, namesOf(operationId, route)),
      query: fc.oneof({ weight: 2, arbitrary: fc.constant("") }, queryOf(route)),
      body: bodyOf(operationId, route),
      key: fc.option(fc.oneof(fc.constantFrom("k1", "k2"), fc.stringMatching(/^[!-~]{1,30}$/), fc.string()), { nil: undefined }),
      lastEventId: fc.option(fc.oneof(fc.string(), fc.constant("x:1")), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ names, query, body, key, lastEventId }) => {
        const encoded = Object.fromEntries(Object.entries(names).map(([name, value]) => [name, encodeURIComponent(value)]));
        const response = await served.orchestrator.http.inject({
          method: route.method,
          url: pathOf(route, encoded) + (query === "" ? "" : `?${query}`),
          headers: {
            ...(body !== undefined && { "content-type": body.type }),
            ...(key !== undefined && { "idempotency-key": key }),
            ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
          },
          ...(body !== undefined && { payload: body.body }),
        });
        const { statusCode: status, body: text } = response;
        statuses.add(status);
        assert.ok(status < 500, `${status} ${text}`);
        const answer = route.answers[status];
        const type = String(response.headers["content-type"]);
        if (answer?.text !== undefined && type.startsWith(answer.text)) return;
        if (answer?.schema !== undefined) {
          assert.match(String(response.headers["content-type"]), /^application\/json/);
          assertFits(checkOf(answer.schema), JSON.parse(text), `${status}`);
        } else if (answer === undefined) {
          assert.match(String(response.headers["content-type"]), /^application\/problem\+json/);
          const problem = JSON.parse(text);
          assertFits(problemCheck, problem, `${status}`);
          assert.equal(problem.status, status);
          const codes: readonly string[] = ["METHOD_NOT_ALLOWED", "ROUTE_NOT_FOUND", ...errorsOf(route)];
          assert.ok(codes.includes(problem.code), `${problem.code} is not in the row: ${text}`);
        }
      }),
      { numRuns: 300 },
    );
    for (const status of Object.keys(route.answers)) {
      if (operationId !== "ready" && status !== "204")
        assert.ok(statuses.has(Number(status)) || status === "200" || status === "202", `never ${status}: ${[...statuses].join(" ")}`);
    }
  });
}

test("the catalogue has a status for every code that a route may answer with", () => {
  for (const route of Object.values<Route>(routes)) for (const code of errorsOf(route)) assert.ok(errorCodes[code].status >= 400);
});
