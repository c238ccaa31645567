import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type ErrorCode, errorCodes, PayloadError, ValidationError, WovyrError } from "../../src/model/errors.ts";
import { errorOfProblem, problemOf, retryAfterOf } from "../../src/protocol/problem.ts";

test("every code of the catalogue survives the way over the wire, with its status and whether a retry helps", () => {
  for (const [code, row] of Object.entries(errorCodes)) {
    const problem = problemOf(new WovyrError("what went wrong", { code: code as ErrorCode }));
    assert.equal(problem.type, `urn:wovyr:error:${code}`);
    assert.match(problem.title, /^[A-Z][a-z ]+$/);
    const error = errorOfProblem(problem.status, JSON.parse(JSON.stringify(problem)));
    assert.deepEqual([error.code, error.status, error.retryable], [code, row.status, row.retryable]);
  }
});

test("what a fault of the server says stays inside", () => {
  const faults = [
    new Error("connect ECONNREFUSED 10.0.0.3:5432"),
    new WovyrError("relation turns does not exist", { code: "INTERNAL" }),
    new WovyrError("password authentication failed for user root", { code: "STORE_UNAVAILABLE" }),
    new TypeError("x is not a function"),
    "a text",
    undefined,
    null,
    Object.assign(new Error("forged"), { code: "INSTANCE_NOT_FOUND", errors: [{ pointer: "/secret", message: "" }] }),
  ];
  for (const fault of faults) {
    const text = JSON.stringify(problemOf(fault));
    assert.doesNotMatch(text, /ECONNREFUSED|relation|password|function|forged|secret/);
    assert.ok(problemOf(fault).status >= 500);
  }
});

test("violations are listed, those of an input under its place in the body", () => {
  const invalid = new ValidationError("does not fit", { violations: [{ pointer: "/amount", message: "Expected number" }] });
  assert.deepEqual(problemOf(invalid, "/input").errors, [{ pointer: "/input/amount", message: "Expected number" }]);
  assert.equal(problemOf(invalid).status, 422);
  const refused = new ApiError("no", { code: "SCHEMA_VIOLATION", errors: [{ pointer: "/id", message: "must be text" }] });
  assert.deepEqual(errorOfProblem(422, problemOf(refused)).errors, refused.errors);
  const many = new ValidationError("no", { violations: Array.from({ length: 90 }, (_, at) => ({ pointer: `/${at}`, message: "no" })) });
  assert.equal(problemOf(many).errors?.length, 20);
});

test("a payload that is too large is answered with 413, one that cannot be stored with 400", () => {
  assert.equal(problemOf(new PayloadError("too large", { code: "PAYLOAD_TOO_LARGE" })).status, 413);
  assert.equal(problemOf(new PayloadError("a function", { code: "PAYLOAD_UNSERIALIZABLE" })).status, 400);
});

test("waiting is suggested where it helps, and for as long as the error says", () => {
  const after = (error: unknown) => retryAfterOf(error, problemOf(error));
  assert.equal(after(new ApiError("busy", { code: "OVERLOADED", retryAfter: 2_500 })), 2_500);
  assert.equal(after(new WovyrError("busy", { code: "OVERLOADED" })), 1_000);
  assert.equal(after(new WovyrError("moved", { code: "NOT_OWNER" })), 1_000);
  assert.equal(after(new WovyrError("no", { code: "INSTANCE_NOT_FOUND" })), undefined);
});

test("an answer that is no problem of ours still becomes an error that says whether to try again", () => {
  assert.deepEqual(parts(errorOfProblem(502, undefined)), ["UNREACHABLE", 502, true]);
  assert.deepEqual(parts(errorOfProblem(503, "<html>")), ["UNREACHABLE", 503, true]);
  assert.deepEqual(parts(errorOfProblem(429, null)), ["OVERLOADED", 429, true]);
  assert.deepEqual(parts(errorOfProblem(413, { code: 5, errors: "none" })), ["BODY_TOO_LARGE", 413, false]);
  assert.deepEqual(parts(errorOfProblem(500, [])), ["INTERNAL", 500, false]);
  assert.deepEqual(parts(errorOfProblem(401, "<html>")), ["UNAUTHENTICATED", 401, false]);
  assert.deepEqual(parts(errorOfProblem(403, undefined)), ["FORBIDDEN", 403, false]);
  assert.deepEqual(parts(errorOfProblem(404, {})), ["MALFORMED_REQUEST", 404, false]);
});

function parts({ code, status, retryable }: ApiError): unknown[] {
  return [code, status, retryable];
}
