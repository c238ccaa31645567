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
}

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
