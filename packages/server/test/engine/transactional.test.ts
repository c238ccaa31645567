/** What runs are told of transactional steps, in virtual time: their outcomes and tombstones are those of the memory store, written by fakes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ActivityError, activity, NonRetryableError, race, settled, sleep, workflow } from "@wovyr/sdk";
import type { HistoryFact, Turn } from "@wovyr/sdk/internal";
import { createFaultyStore, explore, FaultPlan, fake, type TestEnvironment } from "@wovyr/testing";
import type { Store, StoreProvider } from "../../src/engine/ports/store.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { inCase } from "./case.ts";

const types = (turns: readonly Turn[]) => turns.flatMap(({ events }) => events.map(({ type }: HistoryFact) => type));

const refuse = () => Promise.reject(new NonRetryableError("no"));

async function forLong(env: TestEnvironment): Promise<never> {
  await env.sleep("2 days");
  throw new Error("too late");
}

/** A store that is looked into. */
function looked(): { readonly provider: StoreProvider; readonly store: () => Store } {
  const inner = memoryStore();
  let opened: Store | undefined;
  const provider: StoreProvider = {
    ...inner,
    open: async (options) => {
      opened = await inner.open(options);
      return opened;
    },
  };
  return { provider, store: () => opened as Store };
}

const debit = activity("debit", { semantics: "transactional", retry: { maxAttempts: 2 } }, async (_: undefined) => "debited");
const credit = activity("credit", { semantics: "transactional" }, async (_: string) => {});

for (const evictAlways of [false, true]) {
  const cache = evictAlways ? "nothing cached" : "cached";

  test(`a step that fails for good is given up before that is recorded; one that is tried again is not (${cache})`, async () => {
    const { provider, store } = looked();
    const failing = fake(debit, [new Error("again"), "second"]);
    const paying = workflow("paying", async function* () {
      const first = yield* debit(undefined);
      failing.reset();
      return first;
    });
    const refusing = workflow("refusing", async function* () {
      return (yield* settled([credit("x")]))[0]?.status;
    });
    const refused = fake(credit, new NonRetryableError("no"));
    await inCase({ workflows: [paying, refusing], fakes: [failing, refused], store: provider, evictAlways }, async (env) => {
      const run = await env.start(paying);
      assert.equal(await run.result(), "second");
      assert.deepEqual(await store().readStepOutcomes({ tenant: "default", run: run.runId }), []);
      const other = await env.start(refusing);
      assert.equal(await other.result(), "rejected");
      const [grave] = await store().readStepOutcomes({ tenant: "default", run: other.runId });
      assert.deepEqual([grave?.effect, grave?.outcome], ["0.0", null]);
    });
  });

  test(`an outcome that is there when a step is given up is what the run is told (${cache})`, async () => {
    const { provider, store } = looked();
    let how: () => Promise<never> = refuse;
    const commits = fake(debit, async (_, { idempotencyKey }) => {
      const [run = "", effect = ""] = idempotencyKey.split("/");
      await store().saveStepOutcome({ tenant: "default", run, effect, at: 1, outcome: '"first"' });
      return how();
    });
    const failing = workflow("failing", async function* () {
      return yield* debit(undefined);
    });
    const slow = workflow("slow", async function* () {
      return yield* debit(undefined).with({ timeout: { startToClose: "1m" }, retry: { maxAttempts: 1 } });
    });
    const racing = workflow("racing", async function* () {
      return (yield* race({ debit: debit(undefined), sleep: sleep("1h") })).winner;
    });
    const undone = fake(credit, () => {});
    const undoing = workflow("undoing", { compensation: { on: "cancel" } }, async function* () {
      yield* debit(undefined).compensate((value) => credit(value));
      yield* sleep("1 day");
    });
    const workflows = [failing, slow, racing, undoing];
    await inCase({ workflows, fakes: [commits, undone], store: provider, evictAlways }, async (env) => {
      assert.equal(await (await env.start(failing)).result(), "first");
      how = () => forLong(env);
      assert.equal(await (await env.start(slow)).result(), "first");
      assert.equal(await (await env.start(racing)).result(), "debit");
      const run = await env.start(undoing);
      await env.until(() => commits.calls.length === 4);
      await run.cancel();
      await assert.rejects(run.result());
      assert.deepEqual(
        undone.calls.map(({ input }) => input),
        ["first"],
      );
      const facts = types(await env.turns(run.id));
      assert.ok(facts.indexOf("ActivityCompleted") < facts.indexOf("CancelRequested"), facts.join());
    });
  });

  test(`a step that waits for its next attempt and is given up is told of as one more attempt (${cache})`, async () => {
    const { provider, store } = looked();
    const commits = fake(debit, async (_, { idempotencyKey }) => {
      const [run = "", effect = ""] = idempotencyKey.split("/");
      await store().saveStepOutcome({ tenant: "default", run, effect, at: 1, outcome: '"late"' });
      throw new Error("the answer was lost");
    });
    const racing = workflow("racing", async function* () {
      const slowly = debit(undefined).with({ retry: { initialDelay: "1h", jitter: "none" } });
      return (yield* race({ debit: slowly, sleep: sleep("1m") })).winner;
    });
    await inCase({ workflows: [racing], fakes: [commits], store: provider, evictAlways }, async (env) => {
      const run = await env.start(racing);
      assert.equal(await run.result(), "debit");
      assert.deepEqual(types(await env.turns(run.id)).slice(3), [
        "ActivityFailed",
        "AttemptStarted",
        "ActivityCompleted",
        "EffectCancelled",
        "InstanceCompleted",
      ]);
    });
  });

  test(`a step that waits for a decision may be tried again; it is given up when it is decided otherwise (${cache})`, async () => {
    const { provider, store } = looked();
    const failing = fake(debit, [new NonRetryableError("no"), "again", new NonRetryableError("no"), new NonRetryableError("no")]);
    const waiting = workflow("waiting", { onExhausted: "pause" }, async function* () {
      return (yield* settled([debit(undefined)]))[0];
    });
    await inCase({ workflows: [waiting], fakes: [failing], store: provider, evictAlways }, async (env) => {
      const graves = async (run: string) => (await store().readStepOutcomes({ tenant: "default", run })).map(({ outcome }) => outcome);
      const { deadLetters } = env.client;
      const letterOf = async (id: string): Promise<string> => {
        await env.until(async () => (await env.state(id)).activities.get("0.0")?.state === "Paused");
        for await (const letter of deadLetters.list({ instanceId: id })) return letter.id;
        throw new Error("there is no letter");
      };
      const again = await env.start(waiting, undefined, { id: "again" });
      const first = await letterOf("again");
      assert.deepEqual(await graves(again.runId), []);
      await deadLetters.retry(first);
      assert.deepEqual(await again.result(), { status: "fulfilled", value: "again" });
      const resolved = await env.start(waiting, undefined, { id: "resolved" });
      await deadLetters.resolve(await letterOf("resolved"), { output: "by hand" });
      assert.deepEqual(await resolved.result(), { status: "fulfilled", value: "by hand" });
      assert.deepEqual(await graves(resolved.runId), [null]);
      const failed = await env.start(waiting, undefined, { id: "failed" });
      await deadLetters.fail(await letterOf("failed"));
      assert.equal((await failed.result()).status, "rejected");
      assert.deepEqual(await graves(failed.runId), [null]);
    });
  });

  test(`a decision on a step that had committed all the same is told what it came to (${cache})`, async () => {
    const { provider, store } = looked();
    const commits = fake(debit, async (_, { idempotencyKey }) => {
      const [run = "", effect = ""] = idempotencyKey.split("/");
      await store().saveStepOutcome({ tenant: "default", run, effect, at: 1, outcome: '"done"' });
      throw new NonRetryableError("the answer was lost");
    });
    const waiting = workflow("waiting", { onExhausted: "pause" }, async function* () {
      return yield* debit(undefined);
    });
    const stopping = workflow("stopping", { onExhausted: "pause", compensation: { on: "cancel" } }, async function* () {
      yield* debit(undefined).compensate((value) => credit(value));
      yield* sleep("1 day");
    });
    const undone = fake(credit, () => {});
    await inCase({ workflows: [waiting, stopping], fakes: [commits, undone], store: provider, evictAlways }, async (env) => {
      const { deadLetters } = env.client;
      const run = await env.start(waiting, undefined, { id: "decided" });
      await env.until(async () => (await env.state("decided")).activities.get("0")?.state === "Paused");
      for await (const { id } of deadLetters.list({ instanceId: "decided" }))
        await assert.rejects(deadLetters.fail(id), { code: "DEAD_LETTER_DECIDED" });
      assert.equal(await run.result(), "done");
      const other = await env.start(stopping, undefined, { id: "cancelled" });
      await env.until(async () => (await env.state("cancelled")).activities.get("0")?.state === "Paused");
      await other.cancel();
      await assert.rejects(other.result());
      assert.deepEqual(
        undone.calls.map(({ input }) => input),
        ["done"],
      );
    });
  });
}

test("H057 a step that waits to run alone, and turns out to be done when its run is cancelled, makes way for the next", async () => {
  const { provider, store } = looked();
  let begun: string[] = [];
  const hangs = fake(debit, (_, { idempotencyKey }) => {
    begun.push(idempotencyKey);
    return new Promise<string>(() => {});
  });
  const paying = workflow("paying", async function* () {
    return yield* debit(undefined);
  });
  await inCase({ workflows: [paying], fakes: [hangs], store: provider }, async (env) => {
    env.autoSkip = false;
    const first = await env.start(paying);
    await env.settle();
    const second = await env.start(paying);
    for (let losing = 1; losing <= 3; losing++) {
      await env.settle();
      assert.equal(begun.length, 2);
      env.crash();
      begun = [];
      await env.restart();
    }
    await env.settle();
    assert.deepEqual(begun, [], "both are suspect, and wait");
    await store().saveStepOutcome({
      tenant: "default",
      run: first.runId,
      effect: "0",
      at: 1,
      outcome: '"committed by the attempt that was lost"',
    });
    // It has completed by what it was told first.
    await assert.rejects(first.cancel(), { code: "INSTANCE_CLOSED" });
    await env.advance("1s");
    assert.deepEqual(begun, [`${second.runId}/0`]);
    assert.ok(types(await env.turns(first.id)).includes("ActivityCompleted"));
    env.crash();
  });
});

test("a store that is away when a step is given up is waited for", async () => {
  const plan = new FaultPlan();
  plan.fail("saveStepOutcome", { times: 3 });
  const refused = fake(credit, new NonRetryableError("no"));
  const refusing = workflow("refusing", async function* () {
    try {
      yield* credit("x");
    } catch (error) {
      return (error as ActivityError).attempts;
    }
    return 0;
  });
  await inCase({ workflows: [refusing], fakes: [refused], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    assert.equal(await (await env.start(refusing)).result(), 1);
  });
});

test("a retry budget that is used up gives the step up as well", async () => {
  const { provider, store } = looked();
  const failing = fake(debit, new Error("again"));
  const budgeted = workflow("budgeted", { retryBudget: 0 }, async function* () {
    try {
      yield* debit(undefined);
    } catch (error) {
      return error instanceof ActivityError;
    }
    return false;
  });
  await inCase({ workflows: [budgeted], fakes: [failing], store: provider }, async (env) => {
    const run = await env.start(budgeted);
    assert.equal(await run.result(), true);
    assert.deepEqual(
      (await store().readStepOutcomes({ tenant: "default", run: run.runId })).map(({ outcome }) => outcome),
      [null],
    );
  });
});

test("a run that ends without its code gives its steps up; an outcome that is there cannot be told to it", async () => {
  const { provider, store } = looked();
  let world: TestEnvironment;
  const commits = fake(debit, async (_, { idempotencyKey }) => {
    const [run = "", effect = ""] = idempotencyKey.split("/");
    await store().saveStepOutcome({ tenant: "default", run, effect, at: 1, outcome: '"done"' });
    return forLong(world);
  });
  const paying = workflow("paying", async function* () {
    return yield* debit(undefined);
  });
  await inCase({ workflows: [paying], fakes: [commits], store: provider }, async (env) => {
    world = env;
    const run = await env.start(paying);
    await env.until(() => commits.calls.length === 1);
    env.crash();
    await env.restart({ workflows: [] });
    await run.terminate();
    await assert.rejects(run.result());
    assert.deepEqual(types(await env.turns(run.id)).slice(-2), ["EffectCancelled", "InstanceTerminated"]);
  });
});

test("everything that can be interrupted is, and steps that are faked end as any other", async () => {
  const paying = workflow("paying", async function* () {
    const [first] = yield* settled([debit(undefined), credit("x")]);
    const { winner } = yield* race({ again: debit(undefined), sleep: sleep("1m") });
    return [first?.status, winner];
  });
  await explore(paying, undefined, {
    crashes: "everywhere",
    interleavings: 20,
    fakes: () => [fake(debit, () => "debited"), fake(credit, new NonRetryableError("no"))],
    invariant: ({ output }) => {
      if (output !== undefined) assert.equal(output[0], "fulfilled");
    },
  });
});
