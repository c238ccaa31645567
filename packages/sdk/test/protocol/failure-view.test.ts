import assert from "node:assert/strict";
import { test } from "node:test";
import { WovyrError } from "../../src/model/errors.ts";
import { errorOf, failureOf } from "../../src/model/failure.ts";
import { failureOfView, viewOfFailure } from "../../src/protocol/failure-view.ts";

class OutOfStock extends WovyrError {
  readonly sku: string;
  readonly since: Date;
  constructor(sku: string, since: Date, cause: unknown) {
    super(`no ${sku} left`, { code: "NON_RETRYABLE", cause });
    this.sku = sku;
    this.since = since;
  }
}

test("a view shows an error's fields as values, and the error comes back from it as its class", () => {
  const since = new Date("2030-01-01T00:00:00Z");
  const view = viewOfFailure(failureOf(new OutOfStock("A1", since, new RangeError("stock is negative"))));
  assert.equal(view.name, "OutOfStock");
  assert.deepEqual(view.fields, { sku: "A1", since });
  assert.equal(view.cause?.name, "RangeError");
  const error = errorOf(failureOfView(view), [OutOfStock]);
  assert.ok(error instanceof OutOfStock);
  assert.deepEqual([error.sku, error.since, error.message], ["A1", since, "no A1 left"]);
  assert.ok(error.cause instanceof RangeError);
});

test("a thrown value that is no error keeps its type", () => {
  const view = viewOfFailure(failureOf(new Map([[1n, new Date(0)]])));
  assert.deepEqual(view.thrown, new Map([[1n, new Date(0)]]));
  assert.deepEqual(viewOfFailure(failureOfView(view)), view);
});
