import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  ActivityError,
  ApiError,
  CancelledError,
  NonRetryableError,
  OutcomeUnknownError,
  PayloadError,
  RetryAfterError,
  TimeoutError,
  WorkflowError,
} from "@wovyr/sdk";
import { errorOf, failureOf } from "../../src/model/failure.ts";
import { type Classifier, classify, type FailureKind, kindOf } from "../../src/model/failure-kind.ts";

const coded = (code: string) => Object.assign(new Error("x"), { code });
const activityError = (cause: unknown, kind?: FailureKind) =>
  new ActivityError("x", { activity: "a", attempts: 1, cause, ...(kind && { kind }) });
const workflowError = (status: WorkflowError["status"]) => new WorkflowError("x", { instanceId: "i", workflow: "w", status });

const known: readonly [string, unknown, FailureKind][] = [
  ["an error", new Error("x"), "transient"],
  ["a text", "x", "transient"],
  ["nothing", undefined, "transient"],
  ["a RetryAfterError", new RetryAfterError("busy", 1), "transient"],
  ["a NonRetryableError", new NonRetryableError("x"), "permanent"],
  ["what cannot be stored", new PayloadError("x", { code: "PAYLOAD_UNSERIALIZABLE" }), "permanent"],
  ["a refused call", new ApiError("x", { code: "INSTANCE_CLOSED" }), "permanent"],
  ["a call that may be made again", new ApiError("x", { code: "OVERLOADED" }), "transient"],
  ["a TimeoutError", new TimeoutError("late"), "timeout"],
  ["an AbortSignal's timeout", new DOMException("late", "TimeoutError"), "timeout"],
  ["a connection that timed out", coded("ETIMEDOUT"), "timeout"],
  ["a fetch whose headers did not come", new TypeError("fetch failed", { cause: coded("UND_ERR_HEADERS_TIMEOUT") }), "timeout"],
  ["a CancelledError", new CancelledError(), "cancelled"],
  ["an aborted call", new DOMException("aborted", "AbortError"), "transient"],
  ["a refused connection", coded("ECONNREFUSED"), "infrastructure"],
  ["a fetch that found no host", new TypeError("fetch failed", { cause: coded("ENOTFOUND") }), "infrastructure"],
  ["a store that is away", new ApiError("x", { code: "STORE_UNAVAILABLE" }), "infrastructure"],
  ["an activity that timed out", activityError(new TimeoutError("late"), "timeout"), "timeout"],
  ["an activity that is not told of", Object.assign(activityError(new NonRetryableError("x")), { kind: undefined }), "permanent"],
  ["an activity whose outcome is unknown", activityError(new OutcomeUnknownError("x"), "timeout"), "permanent"],
  ["a workflow that timed out", workflowError("TimedOut"), "timeout"],
  ["a workflow that was cancelled", workflowError("Cancelled"), "cancelled"],
  ["a workflow that was terminated", workflowError("Terminated"), "cancelled"],
  ["a workflow that failed", workflowError("Failed"), "transient"],
];

describe("the kind of a failure", () => {
  for (const [what, error, kind] of known)
    it(`of ${what} is ${kind}, also after it crossed a process`, () => {
      assert.equal(kindOf(error), kind);
      assert.equal(kindOf(errorOf(failureOf(error))), kind);
    });

  it("is found whatever was thrown", () => {
    const proxy = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
      },
    );
    assert.equal(kindOf(proxy), "transient");
  });

  it("is what the first classifier says that says something", () => {
    const broken: unknown[] = [];
    const ask = (...classifiers: (Classifier | undefined)[]) =>
      classify(new TimeoutError("late"), classifiers, (cause) => broken.push(cause));
    assert.equal(ask(), "timeout");
    assert.equal(
      ask(
        () => undefined,
        undefined,
        () => "permanent",
        () => "cancelled",
      ),
      "permanent",
    );
    assert.equal(broken.length, 0);
  });

  it("is not what a broken classifier says, of which whoever runs the engine hears", () => {
    const broken: unknown[] = [];
    const throwing = () => {
      throw new Error("oops");
    };
    assert.equal(
      classify("x", [throwing, () => "urgent" as never, () => "infrastructure"], (cause) => broken.push(cause)),
      "infrastructure",
    );
    assert.match(String(broken), /oops.*urgent is no kind of failure; the kinds are transient, permanent/);
  });
});
