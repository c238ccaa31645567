import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { activity, child, workflow } from "@wovyr/sdk";
import { keyOf, priorities, recordedPriority, resolveConcurrency, resolveRateLimit, singletonId } from "@wovyr/sdk/internal";

const wrong = { code: "INVALID_OPTION" };

describe("a priority", () => {
  it("is the first that is said, and nothing where it is the default", () => {
    assert.deepEqual(recordedPriority(undefined, "high", "low"), { priority: "high" });
    assert.deepEqual(recordedPriority("normal", "high"), {});
    assert.deepEqual(recordedPriority(undefined, undefined), {});
    assert.deepEqual(priorities, ["critical", "high", "normal", "low"]);
  });

  it("is refused where it is none: of an activity, a call, a child and a workflow", () => {
    const urgent = { priority: "urgent" as never };
    const fine = activity("fine", async () => 1);
    const flow = workflow("flow", async function* () {});
    assert.throws(() => activity("a", urgent, async () => 1), wrong);
    assert.throws(() => fine().with(urgent), wrong);
    assert.throws(() => child(flow, undefined, urgent), wrong);
    assert.throws(() => workflow("w", urgent, async function* () {}), wrong);
  });
});

describe("limits", () => {
  it("are refused where they make no sense, with the name of what is wrong", () => {
    assert.throws(() => resolveConcurrency({ limit: 0 }, "c"), { ...wrong, message: /c\.limit/ });
    assert.throws(() => resolveConcurrency({ limit: 1, onLimit: "drop" as never }, "c"), { ...wrong, message: /c\.onLimit/ });
    assert.throws(() => resolveConcurrency({ limit: 1, key: "id" as never }, "c"), { ...wrong, message: /c\.key/ });
    assert.throws(() => resolveConcurrency({ limit: 1, scope: "a b" }, "c"), { code: "INVALID_NAME" });
    assert.throws(() => resolveRateLimit({ limit: 1, per: 0 }, "r"), { ...wrong, message: /r\.per/ });
    assert.throws(() => resolveRateLimit({ limit: 1, per: "40 days" }, "r"), { ...wrong, message: /r\.per/ });
  });

  it("have keys that are short texts without control characters", () => {
    const made = (key: unknown) => keyOf(() => key as string, undefined, "key");
    assert.equal(made("äöü 日本"), "äöü 日本");
    for (const key of ["", "x".repeat(256), "a\u0000", "a\u001f", "\ud800", 5, undefined]) assert.throws(() => made(key), wrong);
    const failing = () => {
      throw new Error("no such field");
    };
    assert.throws(() => keyOf(failing, undefined, "key"), { ...wrong, message: /no such field/ });
  });
});

describe("the id of a singleton", () => {
  it("tells workflows and keys apart, whatever they hold", () => {
    assert.equal(singletonId("sync"), "singleton~sync~");
    assert.equal(singletonId("sync", "a"), "singleton~sync~a");
    const ids = [
      singletonId("a", "b~c"),
      singletonId("a~b", "c"),
      singletonId("a", "b c"),
      singletonId("a", "x".repeat(255)),
      singletonId("a", "b"),
    ];
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[A-Za-z0-9_.:~@-]{1,255}$/);
  });
});
