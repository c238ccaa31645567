/** The invariants of docs on architecture that need no database: each test fails when the line of code that keeps its invariant is taken out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActivityError, activity, all, awaitEvent, child, event, sleep, Type, WovyrError, workflow } from "@wovyr/sdk";
import type { Turn } from "@wovyr/sdk/internal";
import { memoryStore } from "@wovyr/server/internal";
import {
  checkEndOfCase,
  createFaultyStore,
  createTestEnvironment,
  ExecutionRecord,
  FaultPlan,
  Gate,
  replayHistory,
  type TestEnvironment,
} from "@wovyr/testing";
import { inCase, macrotasks } from "./case.ts";

const ping = event("ping", Type.Number());
const facts = (turns: readonly Turn[]) => turns.flatMap((turn) => turn.events);

test("invariant 1: nothing is acknowledged, executed, published or shown before the commit that records it", async () => {
  const plan = new FaultPlan();
  const record = new ExecutionRecord();
  const work = activity("work", async () => record.note("work"));
  const sub = workflow("sub", async function* () {
    record.note("child entered");
    yield* sleep("1s");
  });
  const worker = workflow("worker", async function* () {
    yield* awaitEvent(ping);
    yield* all([work(), child(sub, undefined, { id: "sub" })]);
    return "done";
  });
  await inCase({ workflows: [worker, sub], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
    env.autoSkip = false;
    const told: string[] = [];
    const tell = (what: string) => () => {
      told.push(what);
    };

    const start = plan.hold("commit");
    const starting = env.start(worker, undefined, { id: "worker" });
    void starting.then(tell("started"));
    await start.reached;
    await macrotasks();
    assert.deepEqual(told, []);
    assert.equal(await env.bareStore.findInstance("default", "worker"), undefined);
    start.release();
    const run = await starting;

    const streamed: string[] = [];
    const stream = (async () => {
      for await (const { type } of run.stream()) streamed.push(type);
    })();
    await env.settle();
    assert.deepEqual(streamed, ["InstanceStarted", "EventAwaited"]);

    const delivery = plan.hold("commit");
    const sending = run.send(ping, 1).then(tell("sent"));
    await delivery.reached;
    await macrotasks();
    assert.deepEqual(told, ["started"]);
    assert.deepEqual(record.order, []);
    assert.equal(streamed.length, 2);
    assert.deepEqual((await run.describe()).activities, []);
    delivery.release();
    await sending;
    await env.settle();
    assert.deepEqual([...record.order].sort(), ["child entered", "work"]);

    const end = plan.hold("commit", { where: ({ args }) => JSON.stringify(args).includes("InstanceCompleted") });
    const result = run.result().then(tell("result"));
    const moving = env.advance("1s");
    await end.reached;
    await macrotasks();
    assert.deepEqual(told, ["started", "sent"]);
    end.release();
    await moving;
    await env.settle();
    assert.equal((await env.state("worker")).status, "Completed");
    await Promise.all([result, stream]);
    assert.deepEqual(told, ["started", "sent", "result"]);
  });
});

test("H044 invariant 3: two owners never write over one another; the one that lost drops what it made, without its clean-up", async () => {
  const provider = memoryStore();
  const gate = new Gate<string, string>();
  const record = new ExecutionRecord();
  const work = activity("work", gate.body);
  const after = activity("after", async (value: string) => record.note(value));
  const worker = workflow("worker", async function* () {
    try {
      const value = yield* work("work");
      yield* after(value);
      return value;
    } finally {
      record.note("finally");
    }
  });
  await using zombie = await createTestEnvironment({ workflows: [worker], store: provider, autoSkip: false });
  const run = await zombie.start(worker, undefined, { id: "worker" });
  await gate.arrived("work");
  await using owner = await createTestEnvironment({ workflows: [worker], store: provider, autoSkip: false, seed: 2 });
  await owner.settle();
  assert.deepEqual(gate.waiting, ["work", "work"]);

  gate.open("work", "from the zombie");
  await zombie.settle();
  assert.deepEqual(record.order, []);
  gate.open("work", "from the owner");
  await owner.settle();
  assert.deepEqual(record.order, ["from the owner", "finally"]);
  assert.equal(await owner.handle(worker, "worker").result(), "from the owner");

  const turns = await owner.turns("worker", run.runId);
  let next = 1;
  for (const turn of turns) {
    assert.equal(turn.seq, next);
    next += turn.events.length;
  }
  assert.equal(facts(turns).filter((fact) => fact.type === "ActivityCompleted" && fact.effect === "0").length, 1);
  await checkEndOfCase(owner);
});

test("H063 invariant 3: an engine that was frozen while another took over writes nothing", async () => {
  const gate = new Gate<string, string>();
  const record = new ExecutionRecord();
  const sub = workflow("sub", async function* () {
    return "sub";
  });
  const work = activity("work", gate.body);
  const note = activity("note", async (value: string) => record.note(`went on with ${value}`));
  const worker = workflow("worker", { variables: () => ({ value: "" }) }, async function* (_: undefined, ctx) {
    const value = yield* work("work");
    ctx.variables.value = value;
    yield* all([child(sub, undefined, { id: "sub" }), sleep("1s"), note(value)]);
    yield* work("last");
    return value;
  });
  await inCase({ workflows: [worker, sub], lease: "30s" }, async (env) => {
    const run = await env.start(worker, undefined, { id: "worker" });
    await gate.arrived("work");
    await env.settle();
    const zombie = env.freeze();
    await env.restart();
    await env.settle();
    assert.deepEqual(gate.waiting, ["work", "work"]);
    gate.open("work", "the zombie's");
    await zombie.thaw();
    assert.deepEqual(record.order, []);
    assert.equal((await env.state("worker")).activities.size, 1);
    gate.open("work", "the owner's");
    await env.settle();
    await env.advance("1s");
    const last = await gate.arrived("last");
    assert.equal(last.ctx.signal.aborted, false);
    gate.open("last", "");
    assert.equal(await run.result(), "the owner's");
    assert.deepEqual(record.order, ["went on with the owner's"]);
    assert.deepEqual(await env.variables("worker"), { value: "the owner's" });
    assert.equal((await env.history("worker")).filter(({ type }) => type === "ChildStarted").length, 1);
  });
});

test("H063 invariant 3: what an engine still runs when it learns of its loss is asked to stop, and says why", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* (name: string) {
    return yield* work(name);
  });
  await inCase({ workflows: [worker], lease: "30s" }, async (env) => {
    const runs = await Promise.all(["a", "b"].map((name) => env.start(worker, name)));
    const attempts = await Promise.all(["a", "b"].map((name) => gate.arrived(name)));
    await env.settle();
    const zombie = env.freeze();
    await env.restart();
    await env.settle();
    gate.open("a", "the zombie's");
    await zombie.thaw();
    // Its turn was refused, and it asked why.
    const reason: unknown = attempts[1]?.ctx.signal.reason;
    assert.ok(reason instanceof WovyrError && reason.code === "NOT_OWNER", String(reason));
    gate.open("b", "the zombie's");
    await env.settle();
    for (const name of ["a", "b"]) gate.open(name, "the owner's");
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), ["the owner's", "the owner's"]);
  });
});

test("invariant 4: a history replays to exactly its commands, and every change to a command is found at its event", async () => {
  const work = activity("work", async (n: number) => n);
  const worker = workflow("worker", async function* () {
    for (let n = 0; n < 3; n++) yield* all([work(n), sleep("1s"), awaitEvent(ping)]);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    for (let n = 0; n < 3; n++) await run.send(ping, n);
    await run.result();
    const turns = await env.turns(run.id);
    assert.equal((await replayHistory(worker, turns)).failure, undefined);
    let changes = 0;
    for (const [at, turn] of turns.entries())
      for (const [index, fact] of turn.events.entries()) {
        const changed =
          fact.type === "ActivityScheduled"
            ? { ...fact, digest: "other" }
            : fact.type === "TimerStarted" || fact.type === "EventAwaited" || fact.type === "EventConsumed"
              ? { ...fact, effect: `${fact.effect}x` }
              : undefined;
        if (changed === undefined) continue;
        changes += 1;
        const forged = turns.with(at, { ...turn, events: turn.events.with(index, changed) });
        const { failure } = await replayHistory(worker, forged);
        assert.equal((failure as { seq?: number } | undefined)?.seq, turn.seq + index, `${fact.type} at ${turn.seq + index}`);
      }
    assert.ok(changes >= 9);
  });
});

/** What is suspect begins within so long. */
const suspectDelay = "10s";

/** Each attempt is lost with its process as often as makes it suspect. */
async function loseAll(env: TestEnvironment, gate: Gate<string, string>, names: readonly string[]): Promise<void> {
  for (let losing = 1; losing <= 3; losing++) {
    for (const name of names) await gate.arrived(name);
    env.crash();
    for (const name of gate.waiting) gate.open(name, "lost");
    await env.restart();
    await env.settle();
  }
}

test("invariant 5: an attempt keeps its key and number over crashes, its result is recorded once, and losses have a bound of their own", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", { retry: { maxAttempts: 1 } }, gate.body);
  const worker = workflow("worker", async function* () {
    try {
      return yield* work();
    } catch (error) {
      return ((error as ActivityError).cause as { code: string }).code;
    }
  });
  await inCase({ workflows: [worker] }, async (env) => {
    env.autoSkip = false;
    const seen = new Set<string>();
    const survivor = await env.start(worker, undefined, { id: "survivor" });
    for (let crash = 0; crash < 4; crash++) {
      const { ctx } = await gate.arrived();
      seen.add(`${ctx.idempotencyKey} ${ctx.attempt}`);
      gate.open("work", "lost");
      env.crash();
      await env.restart();
      await env.advance(suspectDelay);
    }
    assert.deepEqual([...seen], [`${survivor.runId}/0 1`]);
    gate.open("work", "kept");
    assert.equal(await survivor.result(), "kept");
    const kept = facts(await env.turns("survivor"));
    assert.equal(kept.filter((fact) => fact.type === "AttemptLost").length, 4);
    assert.equal(kept.filter((fact) => fact.type === "ActivityCompleted").length, 1);

    const killer = await env.start(worker, undefined, { id: "killer" });
    for (let crash = 0; crash < 5; crash++) {
      await gate.arrived();
      env.crash();
      gate.open("work", "lost");
      await env.restart();
      await env.advance(suspectDelay);
    }
    assert.equal(await killer.result(), "ATTEMPTS_LOST");
    assert.equal(env.executions.count(`${killer.runId}/0`), 5);
  });
});

test("invariant 5: activities that were lost after their begin was recorded run one at a time, so that the one that kills it is found", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* (name: string) {
    return yield* work(name);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    env.autoSkip = false;
    const names = ["a", "b", "c"];
    const runs = await Promise.all(names.map((name) => env.start(worker, name)));
    // From the third time on their begin is recorded first, and what is lost then is suspect.
    await loseAll(env, gate, names);
    await env.advance(suspectDelay);
    for (let ended = 0; ended < 3; ended++) {
      await env.settle();
      assert.equal(gate.waiting.length, 1);
      const [name = ""] = gate.waiting;
      gate.open(name, name);
    }
    assert.deepEqual((await Promise.all(runs.map((run) => run.result()))).sort(), names);
  });
});

test("invariant 6: after a crash before or after any commit every run ends as it would have, and nothing acknowledged is lost", async () => {
  const record = new ExecutionRecord();
  const work = activity("work", { retry: { initialDelay: "1s", jitter: "none" } }, async (name: string, ctx) => {
    record.note(`${ctx.idempotencyKey}#${ctx.attempt}`);
    if (name === "flaky" && ctx.attempt === 1) throw new Error("once");
    return name;
  });
  const sub = workflow("sub", async function* (n: number) {
    yield* sleep("1s");
    return [n, yield* work("in child")];
  });
  const worker = workflow("worker", async function* () {
    const got = yield* awaitEvent(ping);
    const both = yield* all([work("steady"), work("flaky")]);
    yield* sleep("1s");
    return [got, both, yield* child(sub, 4)];
  });
  const expected = [3, ["steady", "flaky"], [4, "in child"]];
  let commits = 1;
  for (let crashAt = 0; crashAt <= commits; crashAt++)
    for (const at of ["before", "after"] as const) {
      const plan = new FaultPlan();
      await inCase({ workflows: [worker, sub], store: createFaultyStore(memoryStore(), plan) }, async (env) => {
        let seen = 0;
        let crashed = false;
        plan.watch(
          "commit",
          () => {
            seen += 1;
            if (seen !== crashAt || crashed) return;
            crashed = true;
            env.crash();
          },
          at,
        );
        /** Does a call until it is acknowledged; a call without an answer is made again. */
        const acknowledged = async <T>(call: () => Promise<T>): Promise<T> => {
          try {
            return await call();
          } catch (error) {
            assert.equal((error as { code: string }).code, "UNREACHABLE");
            await env.restart();
            return call();
          }
        };
        const begin = record.total;
        const run = await acknowledged(() => env.start(worker, undefined, { id: "worker", idempotencyKey: "once" }));
        await acknowledged(() => run.send(ping, 3, { idempotencyKey: "ping" }));
        const result = run.result();
        for (let idle = 0; idle < 3; idle++) {
          await env.settle();
          if (!env.running) await env.restart();
          await env.advance("10s");
          if (!env.running) await env.restart();
        }
        assert.deepEqual(await result, expected, `crash ${at} commit ${crashAt}`);
        if (crashAt === 0) commits = seen;
        const completed = new Map<string, number>();
        for (const key of record.order.slice(begin)) completed.set(key, (completed.get(key) ?? 0) + 1);
        // Four attempts in all; a crash may repeat those whose outcome was not durable, and no other.
        const repeated = [...completed.values()].reduce((sum, count) => sum + count - 1, 0);
        assert.equal(completed.size, 4);
        assert.ok(crashAt === 0 ? repeated === 0 : repeated <= 2, `${repeated} repeated by a crash ${at} commit ${crashAt}`);
      });
    }
  assert.ok(commits >= 8, `${commits} commits`);
});

test("invariant 5: what only waited for a place when its process died runs among the others, and is lost no further", async () => {
  const running = new Map<string, () => void>();
  const work = activity("work", (name: string) => new Promise<string>((resolve) => running.set(name, () => resolve(name))));
  const worker = workflow("worker", async function* (name: string) {
    return yield* work(name);
  });
  await inCase({ workflows: [worker], limits: { activities: 2 } }, async (env) => {
    env.autoSkip = false;
    const runs = await Promise.all(["a", "b", "c", "d", "e", "f"].map((name) => env.start(worker, name, { id: name })));
    const crash = async () => {
      env.crash();
      running.clear();
      await env.restart();
      await env.advance(suspectDelay);
    };
    const losses = async () => {
      const found = await Promise.all(runs.map(async (run) => (await run.describe()).activities[0]?.losses));
      return found.sort();
    };
    for (const count of [undefined, 1, 2]) {
      await env.settle();
      assert.equal(running.size, 2);
      assert.deepEqual(await losses(), new Array(6).fill(count));
      await crash();
    }
    assert.deepEqual(await losses(), [2, 2, 2, 2, 3, 3]);
    assert.equal(running.size, 3, "one runs alone, and two of the others");
    for (let ended = 0; ended < runs.length; ended += 1) {
      await env.settle();
      const [name = ""] = running.keys();
      running.get(name)?.();
      running.delete(name);
    }
    for (const run of runs) assert.equal(await run.result(), run.id);
  });
});

test("H057 a process that is killed from outside again and again blames no activity for it: what is suspect waits before it begins", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* () {
    return yield* work();
  });
  await inCase({ workflows: [worker] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(worker);
    const losses = async () => (await run.describe()).activities[0]?.losses;
    const crash = async () => {
      env.crash();
      for (const name of gate.waiting) gate.open(name, "lost");
      await env.restart();
      await env.settle();
    };
    for (let losing = 1; losing <= 3; losing++) {
      await gate.arrived();
      await crash();
      assert.equal(await losses(), losing);
    }
    for (let kills = 0; kills < 10; kills++) {
      await env.advance(999);
      assert.deepEqual(gate.waiting, []);
      await crash();
    }
    assert.equal(await losses(), 3);
    await env.advance(1_000);
    await gate.arrived();
    await crash();
    assert.equal(await losses(), 4);
    await env.advance(9_999);
    assert.deepEqual(gate.waiting, []);
    await env.advance(1);
    await gate.arrived();
    gate.open("work", "done");
    assert.equal(await run.result(), "done");
  });
});

for (const end of ["cancel", "terminate"] as const)
  test(`invariant 5: what is suspect and waits makes way for the next when its run ends (${end})`, async () => {
    const gate = new Gate<string, string>();
    const work = activity("work", gate.body);
    const worker = workflow("worker", async function* (name: string) {
      return yield* work(name);
    });
    await inCase({ workflows: [worker] }, async (env) => {
      env.autoSkip = false;
      const names = ["a", "b", "c"];
      const runs = await Promise.all(names.map((name) => env.start(worker, name)));
      await loseAll(env, gate, names);
      assert.deepEqual(gate.waiting, []);
      await runs[0]?.[end]();
      await env.advance(suspectDelay);
      for (let ended = 0; ended < 2; ended++) {
        const [name = ""] = gate.waiting;
        gate.open(name, name);
        await env.settle();
      }
      assert.deepEqual([await runs[1]?.result(), await runs[2]?.result()], ["b", "c"]);
    });
  });

test("invariant 5: of those that run alone the one that was lost least comes first: no process that dies again and again takes the same one with it", async () => {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* (name: string) {
    return yield* work(name);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    env.autoSkip = false;
    const names = ["a", "b", "c"];
    const runs = await Promise.all(names.map((name) => env.start(worker, name)));
    const crash = async () => {
      env.crash();
      for (const name of gate.waiting) gate.open(name, "lost");
      await env.restart();
      await env.advance(suspectDelay);
    };
    for (let together = 0; together < 3; together++) {
      for (const name of names) await gate.arrived(name);
      await crash();
    }
    const alone: string[] = [];
    for (let times = 0; times < names.length; times++) {
      alone.push(...gate.waiting);
      await crash();
    }
    assert.deepEqual(alone.sort(), names);
    for (let ended = 0; ended < names.length; ended++) {
      await env.settle();
      const [name = ""] = gate.waiting;
      gate.open(name, name);
    }
    for (const [index, run] of runs.entries()) assert.equal(await run.result(), names[index]);
  });
});
