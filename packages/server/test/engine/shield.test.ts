import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, CancelledError, race, shield, sleep, TimeoutError, timeout, WorkflowError, workflow } from "@wovyr/sdk";
import { inEachCache } from "./case.ts";

const note = activity("note", async (value: string) => value);

test("a shielded branch runs to its end although its run is cancelled; then the cancellation is told", async () => {
  const transfer = workflow("transfer", { variables: () => ({ log: [] as string[] }) }, async function* (_: undefined, ctx) {
    const { log } = ctx.variables;
    try {
      yield* shield(async function* () {
        log.push(yield* note("taken"));
        yield* sleep("1h");
        log.push(yield* note("given"));
      });
      log.push("went on");
      yield* sleep("1 day");
    } catch (error) {
      if (error instanceof CancelledError) log.push("cancelled");
      throw error;
    }
  });
  await inEachCache({ workflows: [transfer] }, async (env) => {
    const run = await env.start(transfer);
    await env.settle();
    await run.cancel();
    await env.settle();
    assert.equal((await run.describe()).status, "Waiting");
    await assert.rejects(run.result(), (error) => error instanceof WorkflowError && error.status === "Cancelled");
    assert.deepEqual(await env.variables(run.id), { log: ["taken", "given", "cancelled"] });
  });
});

test("a race and a timeout wait for the shielded branch that lost; its value is dropped", async () => {
  const racing = workflow("racing", async function* (_: undefined, ctx) {
    const began = ctx.now().getTime();
    const { winner } = yield* race({ slow: shield(sleep("3h")), quick: sleep("1h") });
    const raced = (ctx.now().getTime() - began) / 3_600_000;
    let late = false;
    try {
      yield* timeout(shield(sleep("3h")), "1h");
    } catch (error) {
      late = error instanceof TimeoutError;
    }
    return { winner, raced, late, hours: (ctx.now().getTime() - began) / 3_600_000 };
  });
  await inEachCache({ workflows: [racing] }, async (env) => {
    assert.deepEqual(await env.execute(racing), { winner: "quick", raced: 3, late: true, hours: 6 });
  });
});

test("a shield gives its branch's value or error, and ends at once with an immediate cancellation or a termination", async () => {
  const shielded = workflow("shielded", async function* (fails: boolean) {
    const [value] = yield* all([shield(note("value"))]);
    if (fails)
      yield* shield(async function* () {
        throw new RangeError("inside");
      });
    yield* shield(sleep("1 day"));
    return value;
  });
  await inEachCache({ workflows: [shielded] }, async (env) => {
    assert.equal(await env.execute(shielded, false), "value");
    await assert.rejects(env.execute(shielded, true), /inside/);
    env.autoSkip = false;
    for (const end of ["cancel", "terminate"] as const) {
      const run = await env.start(shielded, false);
      await env.settle();
      await (end === "cancel" ? run.cancel({ mode: "immediate" }) : run.terminate());
      assert.equal((await run.describe()).status, end === "cancel" ? "Cancelled" : "Terminated");
    }
    env.autoSkip = true;
  });
});
