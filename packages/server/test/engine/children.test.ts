import assert from "node:assert/strict";
import { test } from "node:test";
import {
  all,
  awaitEvent,
  child,
  event,
  race,
  settled,
  sleep,
  spawn,
  Type,
  timeout,
  WorkflowError,
  type WovyrError,
  workflow,
} from "@wovyr/sdk";
import { inEachCache } from "./case.ts";

const go = event("go", Type.Number());
const quick = workflow("quick", async function* (n: number) {
  yield* sleep("1s");
  return n;
});
const waits = workflow("waits", async function* () {
  return yield* awaitEvent(go);
});

test("H048 a child that is to outlive its parent really runs, and its id is free afterwards", async () => {
  const parent = workflow("parent", async function* (n: number) {
    yield* spawn(child(quick, n, { id: `child-${n}`, onParentClose: "abandon" }));
    return "gone";
  });
  await inEachCache({ workflows: [parent, quick] }, async (env) => {
    for (const count of [100, 10]) {
      const parents = await Promise.all(Array.from({ length: count }, (_, n) => env.start(parent, n)));
      await Promise.all(parents.map((run) => run.result()));
      for (let n = 0; n < count; n++) assert.equal(await env.handle(quick, `child-${n}`).result(), n);
    }
  });
});

for (const policy of ["terminate", "cancel"] as const)
  test(`H048 a child whose parent closes first ends by its policy, ${policy}`, async () => {
    const parent = workflow("parent", async function* () {
      yield* spawn(child(waits, undefined, { id: "sub", onParentClose: policy }));
      yield* sleep("1s");
    });
    await inEachCache({ workflows: [parent, waits] }, async (env) => {
      await env.execute(parent);
      await env.settle();
      assert.equal((await env.state("sub")).status, policy === "terminate" ? "Terminated" : "Cancelled");
    });
  });

test("H049 a child whose id an open run has is refused at once, whoever waits for it, with an error that names that run", async () => {
  const direct = workflow("direct", async function* (id: string) {
    try {
      return yield* child(quick, 1, { id });
    } catch (error) {
      return [(error as WovyrError).code, (error as WovyrError).message];
    }
  });
  const joined = workflow("joined", async function* (id: string, ctx) {
    const began = ctx.now().getTime();
    const task = yield* spawn(child(quick, 1, { id }));
    const ends = yield* settled([task, task]);
    const codes = ends.map((end) => (end.status === "rejected" ? (end.reason as WovyrError).code : end.value));
    return [...codes, ctx.now().getTime() - began];
  });
  await inEachCache({ workflows: [direct, joined, quick, waits] }, async (env) => {
    const taken = await env.start(waits, undefined, { id: "taken" });
    const [code, message] = (await env.execute(direct, "taken")) as string[];
    assert.equal(code, "INSTANCE_EXISTS");
    assert.match(message ?? "", new RegExp(`"taken".*${taken.runId}`));
    assert.deepEqual(await env.execute(joined, "taken"), ["INSTANCE_EXISTS", "INSTANCE_EXISTS", 0]);
    await env.execute(quick, 5, { id: "done" });
    assert.equal(await env.execute(direct, "done"), 1);
    await taken.send(go, 1);
    assert.equal(await taken.result(), 1);
  });
});

test("H050 a child id may be used again as soon as its run has ended; each wait gets the result of its own run", async () => {
  const parent = workflow("parent", async function* () {
    const values: number[] = [];
    for (let n = 0; n < 20; n++) values.push(yield* child(quick, n, { id: "X" }));
    return values;
  });
  await inEachCache({ workflows: [parent, quick] }, async (env) => {
    const run = await env.start(parent);
    assert.deepEqual(await run.result(), [...Array(20).keys()]);
    const runs = (await env.turns(run.id))
      .flatMap((turn) => turn.events)
      .flatMap((fact) => (fact.type === "ChildStarted" ? [fact.run] : []));
    assert.equal(new Set(runs).size, 20);
  });
});

for (const how of ["lost a race", "ran out of time", "was cancelled"] as const)
  test(`H050 the id of a child that ${how} is free when that child has ended, and not at once`, async () => {
    const parent = workflow("parent", async function* () {
      const values: unknown[] = [];
      for (let n = 0; n < 8; n++) {
        const first = child(waits, undefined, { id: "X" });
        if (how === "lost a race") yield* race([first, sleep("1s")]);
        else if (how === "ran out of time") yield* settled([timeout(first, "1s")]);
        else {
          const task = yield* spawn(first);
          yield* sleep("1s");
          yield* task.cancel();
        }
        for (let refused = 0; ; refused++) {
          try {
            const value = yield* child(quick, n, { id: "X" });
            values.push(value);
            break;
          } catch (error) {
            assert.equal((error as WovyrError).code, "INSTANCE_EXISTS");
            assert.ok(refused < 3);
            yield* sleep("1s");
          }
        }
      }
      return values;
    });
    await inEachCache({ workflows: [parent, quick, waits] }, async (env) => {
      assert.deepEqual(await env.execute(parent), [...Array(8).keys()]);
    });
  });

test("H050 two children of one id at once: the second is refused, the first is untouched", async () => {
  const parent = workflow("parent", async function* () {
    return (yield* settled([child(quick, 1, { id: "twin" }), child(quick, 2, { id: "twin" })])).map((entry) =>
      entry.status === "fulfilled" ? entry.value : (entry.reason as { code?: string }).code,
    );
  });
  await inEachCache({ workflows: [parent, quick] }, async (env) => assert.deepEqual(await env.execute(parent), [1, "INSTANCE_EXISTS"]));
});

test("a child that fails, is cancelled or terminated throws WorkflowError with its status and cause", async () => {
  class OutOfStock extends Error {
    override readonly name = "OutOfStock";
    sku = "none";
  }
  const failing = workflow("failing", { errors: [OutOfStock] }, async function* () {
    yield* sleep("1s");
    throw Object.assign(new OutOfStock("empty"), { sku: "S1" });
  });
  const parent = workflow("parent", async function* (id: string) {
    try {
      yield* all([id === "failing" ? child(failing, undefined, { id }) : child(waits, undefined, { id })]);
    } catch (error) {
      assert.ok(error instanceof WorkflowError);
      return [error.status, error.instanceId, error.cause instanceof OutOfStock ? error.cause.sku : (error.cause as { code: string }).code];
    }
    return [];
  });
  await inEachCache({ workflows: [parent, failing, waits] }, async (env) => {
    assert.deepEqual(await env.execute(parent, "failing"), ["Failed", "failing", "S1"]);
    for (const [end, status, code] of [
      ["cancel", "Cancelled", "CANCELLED"],
      ["terminate", "Terminated", "TERMINATED"],
    ] as const) {
      const run = await env.start(parent, end);
      await env.settle();
      await env.handle(waits, end)[end]();
      assert.deepEqual(await run.result(), [status, end, code]);
    }
  });
});
