import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, patched, sleep, workflow } from "@wovyr/sdk";
import { type ReplayReport, replay } from "@wovyr/testing";
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

/** Two changes whose questions stand side by side, from before them until both are retired. */
const stages = {
  "before the changes": async function* () {
    return [yield* step("a1"), yield* step("b1")];
  },
  "both asked for": async function* () {
    const a = yield* patched("A");
    const b = yield* patched("B");
    return [yield* step(a ? "a2" : "a1"), yield* step(b ? "b2" : "b1")];
  },
  "A retired": async function* () {
    const b = yield* patched("B");
    return [yield* step("a2"), yield* step(b ? "b2" : "b1")];
  },
  "both retired": async function* () {
    return [yield* step("a2"), yield* step("b2")];
  },
};
type Stage = keyof typeof stages;
const staged = (stage: Stage) => workflow("staged", stages[stage]);

/** What the code of a stage makes of a history that another one made: it fits, or the message names what stands there. */
const fits: Record<Stage, Partial<Record<Stage, RegExp | true>>> = {
  "before the changes": {
    "before the changes": true,
    "both asked for": /recorded with patched\("A"\), patched\("B"\), which this code does not ask for/,
    "A retired": /recorded with patched\("B"\), which this code does not ask for/,
    "both retired": /activity "step" as effect 0/,
  },
  "both asked for": {
    "before the changes": true,
    "both asked for": true,
    "A retired": /patched\("A"\) is false: its history holds no mark of the change/,
    "both retired": /patched\("A"\), patched\("B"\) is false/,
  },
  "A retired": {
    "before the changes": /with another input/,
    "both asked for": true,
    "A retired": true,
    "both retired": /patched\("B"\) is false/,
  },
  "both retired": { "before the changes": /with another input/, "both asked for": true, "A retired": true, "both retired": true },
};

test("H097 adjacent changes are retired one by one; a step that is not allowed names the change", async () => {
  for (const made of Object.keys(stages) as Stage[]) {
    const code = staged(made);
    await inCase({ workflows: [code] }, async (env) => {
      const run = await env.start(code);
      await run.result();
      const history = await env.history(run.id);
      for (const stage of Object.keys(stages) as Stage[]) {
        const report: ReplayReport = await replay(staged(stage), history);
        const expected = fits[stage][made];
        assert.equal(report.ok, expected === true, `history of "${made}", code of "${stage}": ${report.text}`);
        if (expected instanceof RegExp) assert.match(report.text, expected, `history of "${made}", code of "${stage}"`);
      }
    });
  }
});

test("H098 in a loop a change holds from where the run is when it comes, and for good, live and replayed", async () => {
  const eternal = (asks: boolean) =>
    workflow("eternal", { variables: () => ({ seen: [] as boolean[] }) }, async function* (_: undefined, ctx) {
      for (;;) {
        ctx.variables.seen.push(asks && (yield* patched("x")));
        yield* step(`${ctx.variables.seen.at(-1)}`);
        yield* sleep("1 day");
      }
    });
  const [old, changed] = [eternal(false), eternal(true)];
  for (const evictAlways of [false, true])
    await inCase({ workflows: [old], evictAlways, end }, async (env) => {
      env.autoSkip = false;
      const run = await env.start(old);
      await env.advance("2 days");
      await env.restart({ workflows: [changed] });
      for (let day = 0; day < 5; day++) {
        await env.advance("1 day");
        await env.evict();
      }
      assert.deepEqual(await env.variables(run.id), { seen: [false, false, false, true, true, true, true, true] });
    });
});
