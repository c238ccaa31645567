/** Pauses: a run takes no step until it is resumed, and nothing that happens meanwhile is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, condition, event, query, sleep, Type, update, WovyrError, workflow } from "@wovyr/sdk";
import { Gate, type TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "../engine/case.ts";
import { crashedAtEachWrite } from "./crashing.ts";

const Note = event("note", Type.String());
const Notes = query("notes", { output: Type.Array(Type.String()) });
const Add = update("add", { input: Type.String(), output: Type.Number() });

/** Takes notes until there are three of them. */
const notebook = workflow(
  "notebook",
  { events: [Note], variables: () => ({ notes: [] as string[] }) },
  async function* (_: undefined, ctx) {
    const { notes } = ctx.variables;
    ctx.onQuery(Notes, () => [...notes]);
    ctx.onUpdate(Add, { handler: (note) => notes.push(note) });
    ctx.on(Note, (note) => {
      notes.push(note);
    });
    yield* condition(() => notes.length >= 3);
    return notes.join(" ");
  },
);

const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;
const typesOf = async (env: TestEnvironment, id: string) => (await env.history(id)).map(({ type }) => type);

test("what reaches a paused run is kept in order and applied when it resumes; queries are answered meanwhile", async () => {
  await inEachCache({ workflows: [notebook] }, async (env) => {
    const run = await env.start(notebook);
    await run.send(Note, "a");
    await run.pause({ reason: "look at it" });
    await run.send(Note, "b", { idempotencyKey: "b" });
    // Nobody but the test can answer it.
    env.autoSkip = false;
    const added = run.update(Add, "c");
    await env.settle();
    assert.deepEqual(await run.query(Notes), ["a"]);
    const { status, paused } = await run.describe();
    assert.equal(status, "Paused");
    assert.deepEqual(paused, { at: env.now(), reason: "look at it" });
    assert.deepEqual((await typesOf(env, run.id)).slice(-3), ["PauseRequested", "EventReceived", "UpdateRequested"]);
    await run.resume();
    assert.equal(await added, 3);
    assert.equal(await run.result(), "a b c");
    assert.equal((await run.describe()).paused, undefined);
    env.autoSkip = true;
  });
});

test("a paused run is listed as such, and only such", async () => {
  await inCase({ workflows: [notebook] }, async (env) => {
    const [paused, other] = [await env.start(notebook), await env.start(notebook)];
    await paused.pause();
    const ids: string[] = [];
    for await (const { id } of env.client.list({ status: "Paused" })) ids.push(id);
    assert.deepEqual(ids, [paused.id]);
    for (const run of [paused, other]) await run.terminate();
  });
});

test("a pause of a paused run and a resumption of one that works are taken, and change nothing", async () => {
  await inEachCache({ workflows: [notebook] }, async (env) => {
    const run = await env.start(notebook);
    await run.resume();
    await run.send(Note, "a");
    await run.pause({ reason: "first" });
    const since = env.now();
    await env.advance("1h");
    await run.pause({ reason: "second" });
    assert.deepEqual((await run.describe()).paused, { at: since, reason: "first" });
    await run.resume();
    await run.resume();
    for (const note of ["b", "c"]) await run.send(Note, note);
    assert.equal(await run.result(), "a b c");
  });
});

test("an attempt under way is let finish, its outcome waits; one that fails is not tried again before the run resumes", async () => {
  for (const end of ["returns", "fails"] as const) {
    const gate = new Gate<undefined, string>(() => "work");
    const work = activity("work", { retry: { initialDelay: "1m" } }, gate.body);
    const worker = workflow("worker", async function* () {
      return yield* work();
    });
    await inCase({ workflows: [worker], end: { everyAttemptExecuted: true } }, async (env) => {
      const run = await env.start(worker);
      await gate.arrived();
      await run.pause();
      if (end === "returns") gate.open("work", "done");
      else gate.fail("work", new Error("not yet"));
      await env.advance("1 day");
      assert.equal(gate.calls, 1);
      assert.equal((await run.describe()).status, "Paused");
      await run.resume();
      if (end === "fails") {
        await env.advance("1m");
        await gate.arrived();
        gate.open("work", "done");
      }
      assert.equal(await run.result(), "done");
      assert.equal(gate.calls, end === "returns" ? 1 : 2);
    });
  }
});

test("a retry that is due while the run is paused begins when it resumes", async () => {
  let calls = 0;
  const flaky = activity("flaky", { retry: { initialDelay: "1h" } }, async () => {
    calls += 1;
    if (calls === 1) throw new Error("not yet");
    return calls;
  });
  const worker = workflow("worker", async function* () {
    return yield* flaky();
  });
  await inEachCache({ workflows: [worker] }, async (env) => {
    calls = 0;
    const run = await env.start(worker);
    await env.settle();
    await run.pause();
    await env.advance("1 day");
    assert.equal(calls, 1);
    const resumed = env.now().getTime();
    await run.resume();
    assert.equal(await run.result(), 2);
    assert.equal(env.now().getTime(), resumed, "it was overdue");
  });
});

const sleeper = workflow("sleeper", async function* (_: undefined, ctx) {
  const from = ctx.now().getTime();
  yield* all([sleep("1h"), sleep("3h")]);
  return (ctx.now().getTime() - from) / 3_600_000;
});

test("timers of a paused run do not fire; overdue ones fire when it resumes, the others at their time", async () => {
  await inEachCache({ workflows: [sleeper] }, async (env) => {
    const run = await env.start(sleeper);
    await run.pause();
    assert.equal(await env.nextDue(), undefined);
    await env.advance("2h");
    await run.resume();
    await env.settle();
    assert.equal((await typesOf(env, run.id)).filter((type) => type === "TimerFired").length, 1);
    assert.equal(await run.result(), 3);
  });
});

test("a paused run survives restarts, is not loaded by them, and goes on with what was kept", async () => {
  await inCase({ workflows: [notebook, sleeper] }, async (env) => {
    const run = await env.start(notebook);
    const asleep = await env.start(sleeper);
    await run.send(Note, "a");
    await run.pause();
    await asleep.pause();
    await run.send(Note, "b");
    await env.advance("5h");
    for (const graceful of [true, false]) {
      if (graceful) await env.stop();
      await env.restart();
      await env.settle();
      assert.deepEqual(
        [run, asleep].map(({ runId }) => env.engine.table.get(runId)),
        [undefined, undefined],
      );
      assert.equal((await run.describe()).status, "Paused");
    }
    await run.send(Note, "c");
    await run.resume();
    assert.equal(await run.result(), "a b c");
    await asleep.resume();
    assert.equal(await asleep.result(), 5);
  });
});

test("an attempt that died with its process while its run was paused begins again when the run resumes", async () => {
  const gate = new Gate<undefined, string>(() => "work");
  const work = activity("work", gate.body);
  const worker = workflow("worker", async function* () {
    return yield* work();
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived();
    await run.pause();
    await env.restart();
    gate.open("work", "too late");
    await env.advance("1h");
    assert.equal(gate.calls, 1);
    await run.resume();
    await gate.arrived();
    gate.open("work", "done");
    assert.equal(await run.result(), "done");
    assert.equal(gate.calls, 2);
  });
});

test("a graceful cancel waits for the resumption; an immediate one and a termination end the run where it stands", async () => {
  const tidy = workflow("tidy", async function* (_: undefined, ctx) {
    try {
      yield* awaitEvent(event("never"));
    } finally {
      ctx.log.info("tidied");
    }
  });
  await inEachCache({ workflows: [tidy] }, async (env) => {
    const tidied = () => env.logs.filter(({ message }) => message === "tidied").length;
    const graceful = await env.start(tidy);
    await graceful.pause();
    await graceful.cancel();
    await env.settle();
    assert.equal((await graceful.describe()).status, "Paused");
    assert.equal(tidied(), 0);
    await graceful.resume();
    await assert.rejects(graceful.result(), { status: "Cancelled" });
    assert.equal(tidied(), 1);
    const immediate = await env.start(tidy);
    await immediate.pause();
    await immediate.cancel({ mode: "immediate" });
    await assert.rejects(immediate.result(), { status: "Cancelled" });
    const terminated = await env.start(tidy);
    await terminated.pause();
    await terminated.terminate({ reason: "enough" });
    await assert.rejects(terminated.result(), { status: "Terminated" });
    assert.equal(tidied(), 1);
    await assert.rejects(terminated.pause(), code("INSTANCE_CLOSED"));
    await assert.rejects(terminated.resume(), code("INSTANCE_CLOSED"));
  });
});

test("a child tells its paused parent of its end when the parent resumes", async () => {
  const Go = event("go");
  const sub = workflow("sub", async function* () {
    yield* awaitEvent(Go);
    return "done";
  });
  const parent = workflow("parent", async function* () {
    return yield* child(sub, undefined, { id: "sub" });
  });
  await inEachCache({ workflows: [parent, sub] }, async (env) => {
    const run = await env.start(parent);
    await env.settle();
    await run.pause();
    await env.send("sub", Go);
    await env.settle();
    assert.equal((await env.handle(sub, "sub").describe()).status, "Completed");
    assert.equal((await run.describe()).status, "Paused");
    await run.resume();
    assert.equal(await run.result(), "done");
  });
});

test("H059 a parked run that is told to resume is tried again at once, with code that fits or without", async () => {
  const first = workflow("changing", async function* () {
    yield* sleep("1h");
    return "first";
  });
  const changed = workflow("changing", async function* () {
    yield* awaitEvent(event("never"));
    return "second";
  });
  let mended = true;
  const both = workflow("changing", async function* () {
    yield* mended ? sleep("1h") : awaitEvent(event("never"));
    return "third";
  });
  await inCase({ workflows: [first], end: { skipReplay: () => true } }, async (env) => {
    const run = await env.start(first);
    await env.settle();
    await env.restart({ workflows: [changed] });
    await env.engine.revival.load({ tenant: "default", run: run.runId });
    await env.settle();
    assert.equal((await run.describe()).status, "Parked");
    await run.resume();
    await env.settle();
    assert.equal((await run.describe()).status, "Parked", "its code is as it was");
    mended = false;
    await env.restart({ workflows: [both] });
    assert.equal((await run.describe()).status, "Parked");
    mended = true;
    await run.resume();
    assert.equal(await run.result(), "third");
  });
});

test("a crash at any write of a pause and a resumption loses nothing and repeats nothing", async () => {
  const crashes = await crashedAtEachWrite({ workflows: [notebook] }, async ({ env, begin, insist }) => {
    begin();
    const run = await insist(() => env.start(notebook, undefined, { id: "n", idempotencyKey: "start" }));
    await insist(() => run.send(Note, "a", { idempotencyKey: "a" }));
    await insist(() => run.pause());
    await insist(() => run.send(Note, "b", { idempotencyKey: "b" }));
    await insist(() => run.resume());
    await insist(() => run.send(Note, "c", { idempotencyKey: "c" }));
    assert.equal(await insist(() => run.result()), "a b c");
  });
  assert.ok(crashes > 8, String(crashes));
});

test("what is said about an operation is 1,000 characters at most, and nothing is done when it is more", async () => {
  await inCase({ workflows: [notebook] }, async (env) => {
    const run = await env.start(notebook);
    await run.send(Note, "a");
    const before = await typesOf(env, run.id);
    const [longest, reason] = ["x".repeat(1_000), "x".repeat(1_001)];
    for (const operation of [
      () => run.pause({ reason }),
      () => run.cancel({ reason }),
      () => run.terminate({ reason }),
      () => run.reset({ to: "first", reason }),
      () => run.skipCompensation("0", { note: reason }),
      () => env.client.deadLetters.retry("a", { note: reason }),
      () => run.pause({ reason: 1 as unknown as string }),
    ])
      await assert.rejects(operation(), code("INVALID_OPTION"));
    assert.deepEqual(await typesOf(env, run.id), before);
    await run.pause({ reason: longest });
    assert.equal((await run.describe()).paused?.reason, longest);
  });
});
