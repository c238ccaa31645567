import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, patched, sleep, workflow } from "@wovyr/sdk";
import { inCase } from "./case.ts";

const step = activity("step", async (name: string) => name);

/** The code changes on purpose. */
const end = { skipReplay: () => true };

const before = workflow("changing", async function* () {
  const seen: string[] = [];
  for (let round = 0; round < 3; round++) {
    seen.push(yield* step("old"));
    yield* sleep("1 day");
  }
  return seen;
});
const during = workflow("changing", async function* () {
  const seen: string[] = [];
  for (let round = 0; round < 3; round++) {
    seen.push(yield* step((yield* patched("new-step")) ? "new" : "old"));
    yield* sleep("1 day");
  }
  return seen;
});
const after = workflow("changing", async function* () {
  const seen: string[] = [];
  for (let round = 0; round < 3; round++) {
    seen.push(yield* step("new"));
    yield* sleep("1 day");
  }
  return seen;
});

for (const evictAlways of [false, true])
  test(`a change applies to new runs whole, and to runs that were there from where they are${evictAlways ? ", replayed each time" : ""}`, async () => {
    await inCase({ workflows: [before], evictAlways, end }, async (env) => {
      const old = await env.start(before);
      await env.advance("1 day");
      await env.restart({ workflows: [during] });
      assert.deepEqual(await old.result(), ["old", "old", "new"]);
      const young = await env.start(during);
      await env.advance("1 day");
      await env.evict();
      assert.deepEqual(await young.result(), ["new", "new", "new"]);
    });
  });

test("when the change is retired, recorded marks are passed over", async () => {
  await inCase({ workflows: [during], end }, async (env) => {
    const run = await env.start(during);
    await env.advance("1 day");
    await env.restart({ workflows: [after] });
    assert.deepEqual(await run.result(), ["new", "new", "new"]);
  });
});

test("several changes, asked in another order or in branches, are kept apart", async () => {
  const first = workflow("many", async function* () {
    return yield* all([
      async function* () {
        return yield* step((yield* patched("a")) ? "A" : "a");
      },
      async function* () {
        return yield* step((yield* patched("b")) ? "B" : "b");
      },
    ]);
  });
  const later = workflow("many", async function* () {
    const changes = { b: yield* patched("b"), a: yield* patched("a"), c: yield* patched("c") };
    const names = yield* all([step(changes.a ? "A" : "a"), step(changes.b ? "B" : "b")]);
    yield* sleep("1h");
    return [...names, changes.c ? "C" : "c"];
  });
  await inCase({ workflows: [first, later].slice(0, 1) }, async (env) => {
    assert.deepEqual(await env.execute(first), ["A", "B"]);
  });
  await inCase({ workflows: [later], evictAlways: true }, async (env) => {
    assert.deepEqual(await env.execute(later), ["A", "B", "C"]);
  });
});
