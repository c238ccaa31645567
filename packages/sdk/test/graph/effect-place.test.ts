import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOf } from "../../src/graph/effect-place.ts";

test("an id says where its effect stands", () => {
  for (const [id, place] of [
    ["2", { kind: "step", path: "", index: 2 }],
    ["2.1", { kind: "branch", of: "2", index: 1 }],
    ["2.1/0", { kind: "step", path: "2.1", index: 0 }],
    ["2.1/0.3", { kind: "branch", of: "2.1/0", index: 3 }],
    ["2.1.0", { kind: "branch", of: "2.1", index: 0 }],
    ["2.1/0!timeout", { kind: "beside", of: "2.1/0", what: "timeout" }],
    ["!cleanup", { kind: "beside", of: "", what: "cleanup" }],
    ["on:order.v1.2/0", { kind: "outside" }],
    ["on:order.v1.2/0/4", { kind: "step", path: "on:order.v1.2/0", index: 4 }],
    ["u:7", { kind: "outside" }],
    ["u:7/0.1", { kind: "branch", of: "u:7/0", index: 1 }],
  ] as const)
    assert.deepEqual(placeOf(id), place, id);
});

test("an id that the author chose is not taken apart", () => {
  for (const id of ["@charge", "@a.1", "@2", "@x:y"]) assert.deepEqual(placeOf(id), { kind: "chosen" }, id);
});

test("any other text is an effect of its own, also a very long one", () => {
  for (const id of ["", "x", "later:thing", ".1", "/1", "1.", "1/x", "1!", "1!a!b", `0${".0".repeat(10_000)}`])
    assert.deepEqual(placeOf(id), { kind: "outside" }, id.slice(0, 20));
});
