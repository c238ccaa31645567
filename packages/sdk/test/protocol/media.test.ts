import assert from "node:assert/strict";
import { test } from "node:test";
import { idempotencyKeyPattern } from "../../src/model/idempotency-key.ts";
import { viewOf, viewOfBody } from "../../src/protocol/media.ts";

test("an answer keeps types only where that is asked for by name", () => {
  assert.equal(viewOf(undefined), "plain");
  assert.equal(viewOf("*/*"), "plain");
  assert.equal(viewOf("text/html, application/json;q=0.9"), "plain");
  assert.equal(viewOf("application/vnd.wovyr+json"), "typed");
  assert.equal(viewOf("text/event-stream, application/vnd.wovyr+json"), "typed");
});

test("a body is read by its content type, and only in UTF-8", () => {
  assert.equal(viewOfBody("application/json"), "plain");
  assert.equal(viewOfBody("Application/JSON; charset=UTF-8"), "plain");
  assert.equal(viewOfBody('application/json;charset="utf-8"'), "plain");
  assert.equal(viewOfBody("application/json; profile=x"), "plain");
  assert.equal(viewOfBody("application/vnd.wovyr+json; charset=utf-8"), "typed");
  for (const type of [
    undefined,
    "",
    "text/plain",
    "application/json; charset=latin1",
    "application/jsonp",
    "application/x-www-form-urlencoded",
  ]) {
    assert.equal(viewOfBody(type), undefined, type);
  }
});

test("an idempotency key is visible ASCII of at most 255 characters", () => {
  for (const key of ["a", "order-42/1", "~!".repeat(127)]) assert.match(key, idempotencyKeyPattern);
  for (const key of ["", "a b", "é", "a\n", "\u0000", "a".repeat(256)]) assert.doesNotMatch(key, idempotencyKeyPattern);
});
