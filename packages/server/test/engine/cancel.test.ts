import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  any,
  awaitEvent,
  type Branch,
  CancelledError,
  child,
  compensateNow,
  condition,
  event,
  type Flow,
  map,
  race,
  saga,
  select,
  settled,
  shield,
  sleep,
  spawn,
  step,
  TimeoutError,
  Type,
  timeout,
  update,
  WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { type AnyEffect, InstanceState, type Turn } from "@wovyr/sdk/internal";
import { ExecutionRecord, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const ok = event("ok", Type.Number());
const never = event("never");
const cancelled = (reason?: string) => (error: unknown) => {
  assert.ok(error instanceof WorkflowError);
  assert.equal(error.status, "Cancelled");
  if (reason !== undefined) assert.match(String(error.cause), new RegExp(reason));
  return true;
};
const facts = (turns: readonly Turn[]) => turns.flatMap((turn) => turn.events);

for (const [late, how] of Object.entries({
  fails: (gate: Gate<undefined, string>) => gate.fail("work", new Error("too late")),
  returns: (gate: Gate<undefined, string>) => gate.open("work", "too late"),
  "runs out of time": () => {},
}))
  for (const mode of ["graceful", "immediate"] as const)
    test(`H037 a cancelled run (${mode}) stays so when an activity that ignores its signal ${late} later`, async () => {
      const gate = new Gate<undefined, string>(() => "work");
      const work = activity("work", { timeout: { startToClose: "10s" } }, gate.body);
      const worker = workflow("worker", async function* () {
        return yield* work();
      });
      await inCase({ workflows: [worker], end: { everyAttemptExecuted: true } }, async (env) => {
        const run = await env.start(worker);
        await gate.arrived();
        await run.cancel({ mode, reason: "enough" });
        await assert.rejects(run.result(), cancelled("enough"));
        const before = await env.turns(run.id);
        how(gate);
        await env.advance("1m");
        assert.deepEqual(await env.turns(run.id), before);
        assert.equal(gate.calls, 1);
      });
    });

const nested = (note: (name: string) => Branch<unknown>) => {
  const scope = async function* (name: string, branch: Branch): Flow<void> {
    try {
      await Promise.resolve();
      if (typeof branch === "function") yield* branch();
      else yield* branch;
    } finally {
      yield* note(name) as Flow<unknown>;
    }
  };
  return scope;
};

test("H038 a cancel closes what is open, and runs the clean-ups, in the order of creation, every time", async () => {
  const gate = new Gate<string, void>();
  const work = activity("work", gate.body);
  const note = activity("note", async (name: string) => name);
  const sub = workflow("sub", async function* () {
    yield* awaitEvent(never);
  });
  const scope = nested((name) => note(name));
  const wide = workflow("wide", async function* () {
    const kinds = (at: string): Branch[] => [
      scope(`${at}-activity`, work(at)),
      scope(`${at}-timer`, sleep("1 day")),
      scope(`${at}-event`, awaitEvent(never)),
      scope(`${at}-child`, child(sub)),
      scope(`${at}-timeout`, awaitEvent(never, { timeout: "2 days" })),
    ];
    yield* all([
      ...kinds("a"),
      scope("inner", async function* () {
        yield* all([...kinds("b"), ...kinds("c")]);
      }),
    ]);
  });
  const orders = new Set<string>();
  for (const evictAlways of [false, true])
    await inCase({ workflows: [wide, sub], evictAlways }, async (env) => {
      const run = await env.start(wide);
      await gate.arrived("c");
      await env.settle();
      await run.cancel();
      await assert.rejects(run.result(), cancelled());
      const all = facts(await env.turns(run.id));
      const closed = all.flatMap((fact) => (fact.type === "EffectCancelled" ? [fact.effect] : []));
      const opened = all.flatMap((fact) => ("effect" in fact && fact.type !== "EffectCancelled" ? [fact.effect] : []));
      const notes = all.flatMap((fact) => (fact.type === "ActivityScheduled" && fact.name === "note" ? [fact.input] : []));
      assert.deepEqual(
        closed.filter((effect) => !effect.includes("!")),
        opened.filter((effect) => closed.includes(effect) && !effect.includes("!")).filter(unique),
      );
      const leaves = ["activity", "timer", "event", "child", "timeout"];
      assert.deepEqual(
        notes.map((input) => JSON.parse(input) as string),
        [..."abc"].flatMap((at) => leaves.map((leaf) => `${at}-${leaf}`)).concat("inner"),
      );
      orders.add(JSON.stringify([closed, notes]));
      for (const at of gate.waiting) gate.open(at, undefined);
    });
  assert.equal(orders.size, 1);
});

const unique = <T>(item: T, index: number, list: readonly T[]) => list.indexOf(item) === index;

for (const sent of [true, false])
  test(`H039 what a clean-up yields runs to its normal end (${sent ? "its event comes" : "its event does not come"}); a second cancel changes nothing`, async () => {
    const record = new ExecutionRecord();
    const cleanup = activity("cleanup", async () => record.note("cleanup"));
    const sub = workflow("sub", async function* () {
      yield* sleep("1s");
      return "sub";
    });
    const cleaner = workflow("cleaner", async function* () {
      try {
        yield* sleep("1 day");
      } catch (error) {
        assert.ok(error instanceof CancelledError);
        let answer: unknown = "none";
        try {
          answer = yield* awaitEvent(ok, { timeout: "10s" });
        } catch (late) {
          assert.ok(late instanceof TimeoutError);
        }
        yield* cleanup();
        yield* sleep("1s");
        record.note(`${answer} ${yield* child(sub)}`);
        throw error;
      }
    });
    await inEachCache({ workflows: [cleaner, sub] }, async (env) => {
      const before = record.total;
      const run = await env.start(cleaner);
      await run.cancel();
      await env.settle();
      await run.cancel({ reason: "again" });
      if (sent) await run.send(ok, 1);
      await assert.rejects(run.result(), cancelled("cancelled on request"));
      assert.equal(record.total, before + 2);
      assert.equal(record.order.at(-1), `${sent ? 1 : "none"} sub`);
    });
  });

const slowly = new Gate<undefined, string>(() => "slow");
const slow = activity("slow", slowly.body);
const failing = activity("failing", { retry: { initialDelay: "1h", jitter: "none" } }, async () => {
  throw new Error("again");
});
/** Its second attempt is the one that the cancellation finds. */
const second = new Gate<undefined, string>(() => "second");
const retried = activity("retried", { retry: { initialDelay: 0, jitter: "none" } }, (input: undefined, ctx) => {
  if (ctx.attempt === 1) throw new Error("once");
  return second.body(input, ctx);
});
const forever = workflow("forever", async function* () {
  yield* awaitEvent(never);
});
const asked = update("asked");
type Waits = Record<string, () => Branch<unknown>>;

/** What a run may wait for, by the effect that it waits at: a new kind of effect does not compile here before it has its line. */
const waits: Record<AnyEffect["kind"], Waits> = {
  sleep: { sleep: () => sleep("1 day") },
  event: { event: () => awaitEvent(never), "event with a timeout": () => awaitEvent(never, { timeout: "1 day" }) },
  child: { child: () => child(forever), "child of another life": () => child(forever, undefined, { onParentClose: "abandon" }) },
  activity: {
    activity: () => slow(),
    retry: () => failing(),
    "second attempt": () => retried(),
    step: () => step("step", () => slowly.body(undefined, undefined as never)),
  },
  all: { all: () => all([sleep("1 day"), awaitEvent(never)]) },
  settled: { settled: () => settled([sleep("1 day"), awaitEvent(never)]) },
  any: { any: () => any([sleep("1 day"), awaitEvent(never)]) },
  race: { race: () => race([sleep("1 day"), awaitEvent(never)]) },
  map: { map: () => map([1, 2, 3], () => awaitEvent(never), { concurrency: 2 }) },
  timeout: { timeout: () => timeout(awaitEvent(never), "1 day") },
  condition: {
    condition: () => condition(() => false),
    "condition with a timeout": () => condition(() => false, { timeout: "1 day" }),
  },
  spawn: {
    spawn: () =>
      async function* () {
        yield* spawn(sleep("1 day"));
        yield* awaitEvent(never);
      },
  },
  task: {
    task: () =>
      async function* () {
        yield* yield* spawn(sleep("1 day"));
      },
  },
  select: {
    select: () =>
      async function* () {
        yield* select([yield* spawn(sleep("1 day")), yield* spawn(awaitEvent(never))]);
      },
  },
  cancelTask: {
    "task's cancellation": () =>
      async function* () {
        const task = yield* spawn(async function* () {
          try {
            yield* awaitEvent(never);
          } finally {
            yield* sleep("30s");
          }
        });
        yield* task.cancel();
      },
  },
  // A shield holds a graceful cancellation until what it covers has ended.
  shield: { shield: () => shield(sleep("1h")) },
  saga: { saga: () => saga(awaitEvent(never)) },
  // What undoes holds it as well, where the code asked for it.
  compensateNow: {
    compensation: () =>
      async function* () {
        yield* step("done", async () => {}).compensate(() => sleep("1h"));
        yield* compensateNow();
      },
  },
  // These wait for nothing.
  sideEffect: {},
  patched: {},
  continueAsNew: {},
};

for (const [kind, wait] of Object.values(waits).flatMap((each) => Object.entries(each)))
  for (const mode of ["graceful", "immediate", "terminate"] as const)
    test(`H040 H041 ${mode === "terminate" ? "a termination" : `a cancel (${mode})`} reaches a run that waits for ${kind}`, async () => {
      const record = new ExecutionRecord();
      const note = activity("note", async (name: string) => record.note(name));
      const waiter = workflow("waiter", async function* (_: undefined, ctx) {
        ctx.onUpdate(asked, {
          handler: async function* () {
            yield* awaitEvent(ok);
            record.note("after");
          },
        });
        yield* note("before");
        try {
          const branch = wait();
          if (typeof branch === "function") yield* branch();
          else yield* branch;
          yield* note("after");
        } finally {
          record.note("finally");
        }
      });
      for (const evicted of [false, true])
        await inCase({ workflows: [waiter, forever], autoSkip: false }, async (env) => {
          const run = await env.start(waiter);
          await env.settle();
          if (kind === "second attempt") await second.arrived();
          const update = run.update(asked).catch((error: unknown) => (error as { code: string }).code);
          await env.settle();
          if (evicted) await env.evict(run);
          const before = record.count("finally");
          if (mode === "terminate") await run.terminate();
          else await run.cancel({ mode });
          env.autoSkip = true;
          await assert.rejects(
            run.result(),
            (error: WorkflowError) => error.status === (mode === "terminate" ? "Terminated" : "Cancelled"),
          );
          assert.equal(await update, "UPDATE_UNFINISHED");
          assert.equal(record.count("after"), 0);
          assert.equal(record.count("finally") - before, mode === "graceful" ? 1 : 0);
          const state = await env.state(run.id);
          const { activities, timers, waits: events, children, conditions, updates } = state;
          for (const open of [activities, timers, events, children, conditions, updates]) assert.equal(open.size, 0);
          await env.advance("1 day");
          assert.equal(record.count("after"), 0);
          for (const gate of [slowly, second]) for (const key of gate.waiting) gate.open(key, "");
        });
    });

test("H041 every kind of open operation that a state has is open in a test above", async () => {
  const open = new Set<string>();
  for (const wait of Object.values(waits).flatMap((each) => Object.values(each))) {
    const waiter = workflow("waiter", async function* (_: undefined, ctx) {
      ctx.onUpdate(asked, {
        handler: async function* () {
          yield* sleep("1 day");
        },
      });
      const branch = wait();
      if (typeof branch === "function") yield* branch();
      else yield* branch;
    });
    await inCase({ workflows: [waiter, forever], autoSkip: false }, async (env) => {
      const run = await env.start(waiter);
      void run.update(asked).catch(() => {});
      await env.settle();
      for (const [name, size] of collections(await env.state(run.id))) if (size > 0) open.add(name);
      await run.terminate();
      for (const gate of [slowly, second]) for (const key of gate.waiting) gate.open(key, "");
    });
  }
  // What was told, and not what is waited for.
  const told = ["messages", "unread"];
  const kinds = collections(new InstanceState()).map(([name]) => name);
  assert.deepEqual(
    kinds.filter((name) => !told.includes(name)).filter((name) => !open.has(name)),
    [],
  );
});

/** The maps and sets of a state, by name, with their sizes. */
function collections(state: InstanceState): [name: string, size: number][] {
  return Object.entries(Object.getOwnPropertyDescriptors(InstanceState.prototype)).flatMap(([name, { get }]) => {
    const value: unknown = get?.call(state);
    return value instanceof Map || value instanceof Set ? [[name, value.size] as [string, number]] : [];
  });
}

test("H042 an activity hears of the cancel at once, and why", async () => {
  const gate = new Gate<undefined, void>(() => "work");
  const work = activity("work", { timeout: { startToClose: "1h" } }, gate.body);
  const worker = workflow("worker", async function* () {
    yield* work();
  });
  await inCase({ workflows: [worker] }, async (env) => {
    for (const end of ["cancel", "terminate"] as const) {
      const run = await env.start(worker);
      const { ctx } = await gate.arrived();
      const aborted = new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve(ctx.signal.reason)));
      const began = env.now().getTime();
      await run[end]();
      assert.ok((await aborted) instanceof CancelledError);
      assert.equal(env.now().getTime(), began);
      gate.open("work", undefined);
    }
    const run = await env.start(worker);
    const { ctx } = await gate.arrived();
    assert.equal(ctx.signal.aborted, false);
    await env.advance("1h");
    assert.ok(ctx.signal.reason instanceof TimeoutError);
    await run.cancel();
    await assert.rejects(run.result(), cancelled());
  });
});

test("H043 clean-up that waits too long is dropped after cleanupTimeout, and the run ends", async () => {
  const record = new ExecutionRecord();
  const stubborn = workflow("stubborn", async function* () {
    try {
      yield* sleep("1 day");
    } finally {
      yield* awaitEvent(never);
      record.note("beyond");
    }
  });
  await inEachCache({ workflows: [stubborn] }, async (env) => {
    const run = await env.start(stubborn);
    await run.cancel();
    const began = env.now().getTime();
    await assert.rejects(run.result(), cancelled());
    assert.equal(env.now().getTime() - began, 60_000);
    assert.equal(record.total, 0);
    assert.ok(env.logs.some((line) => line.message.includes("took longer than 60000 ms and was dropped")));
  });
});

test("a cancelled branch that swallows its cancellation is not revived, and clean-up errors do not change the winner", async () => {
  const note = activity("note", async (name: string) => name);
  const seen: string[] = [];
  const racer = workflow("racer", async function* () {
    seen.length = 0;
    const first = yield* race({
      winner: sleep("1s"),
      swallows: async function* () {
        try {
          yield* sleep("1 day");
        } catch {
          seen.push(yield* note("swallowed"));
        }
        return "revived";
      },
      throws: async function* () {
        try {
          yield* sleep("1 day");
        } finally {
          yield* sleep("5s");
          // biome-ignore lint/correctness/noUnsafeFinally: this is the case
          throw new Error("in clean-up");
        }
      },
    });
    return first.winner;
  });
  await inEachCache({ workflows: [racer] }, async (env) => {
    const began = env.now().getTime();
    assert.equal(await env.execute(racer), "winner");
    assert.equal(env.now().getTime() - began, 6_000);
    assert.deepEqual(seen, ["swallowed"]);
    assert.equal(env.logs.filter((line) => line.message.includes("the clean-up of a cancelled branch threw")).length, 1);
  });
});

test("a cancel that arrives with the completion of the awaited activity is delivered before the next effect", async () => {
  const gate = new Gate<undefined, number>(() => "work");
  const work = activity("work", gate.body);
  const note = activity("note", async () => "noted");
  const worker = workflow("worker", async function* () {
    yield* work();
    yield* note();
    return "done";
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived();
    const cancelling = run.cancel();
    gate.open("work", 1);
    await cancelling;
    await assert.rejects(run.result(), cancelled());
    assert.ok(!facts(await env.turns(run.id)).some((fact) => fact.type === "ActivityScheduled" && fact.name === "note"));
  });
});
