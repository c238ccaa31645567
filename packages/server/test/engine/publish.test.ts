/** Publications: who gets them, once, in whatever order publisher and waiter come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ActivityError,
  type ApiError,
  activity,
  all,
  awaitEvent,
  child,
  event,
  publish,
  race,
  sleep,
  spawn,
  TimeoutError,
  Type,
  ValidationError,
  workflow,
} from "@wovyr/sdk";
import type { TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const Paid = event("paid", Type.Number());
const Note = event("note", Type.String());
const echo = activity("echo", async (value: string) => value);

const paidFor = workflow("paid-for", async function* (key: string) {
  return yield* awaitEvent(Paid, { key, timeout: "30 days" });
});

const receivedBy = async (env: TestEnvironment, id: string, runId?: string) =>
  (await env.turns(id, runId)).flatMap((turn) => turn.events).filter((fact) => fact.type === "EventReceived").length;

test("a publication reaches every run that waits for its key, each once, and no other", async () => {
  await inEachCache({ workflows: [paidFor] }, async (env) => {
    const runs = await Promise.all(["a", "a", "b"].map((key) => env.start(paidFor, key)));
    await env.settle();
    const published = await env.publish(Paid, 5, { key: "a" });
    assert.deepEqual([published.delivered, published.started, published.replayed], [2, [], false]);
    assert.deepEqual(await Promise.all(runs.slice(0, 2).map((run) => run.result())), [5, 5]);
    assert.equal(await receivedBy(env, runs[2]?.id ?? ""), 0);
    assert.deepEqual((await env.publish(Paid, 6, { key: "b" })).delivered, 1);
    assert.equal(await runs[2]?.result(), 6);
    assert.equal((await env.publish(Paid, 7, { key: "c" })).delivered, 0);
  });
});

test("H020 a publication that comes before the wait is found by it, also after a restart, and by runs that start later", async () => {
  const early = workflow("early", async function* (key: string) {
    yield* sleep("1h");
    return yield* awaitEvent(Paid, { key, timeout: "1m" });
  });
  await inEachCache({ workflows: [early, paidFor] }, async (env) => {
    const run = await env.start(early, "a");
    await env.settle();
    assert.equal((await env.publish(Paid, 5, { key: "a" })).delivered, 0);
    await env.restart();
    assert.equal(await run.result(), 5);
    assert.equal(await env.execute(paidFor, "a"), 5);
  });
});

test("kept publications are taken oldest first, each once by a run, and those of other keys are left", async () => {
  const reading = workflow("reading", async function* (key: string) {
    const taken: number[] = [];
    for (let n = 0; n < 3; n++) taken.push(yield* awaitEvent(Paid, { key }));
    yield* echo("in between");
    taken.push(yield* awaitEvent(Paid, { key }));
    try {
      taken.push(yield* awaitEvent(Paid, { key, timeout: "1h" }));
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
    return taken;
  });
  await inEachCache({ workflows: [reading] }, async (env) => {
    for (const [value, key] of [
      [1, "a"],
      [2, "b"],
      [3, "a"],
      [4, undefined],
      [5, "a"],
      [6, "a"],
    ] as const)
      await env.publish(Paid, value, { key });
    assert.deepEqual(await env.execute(reading, "a"), [1, 3, 5, 6]);
    assert.deepEqual(await env.execute(reading, "a"), [1, 3, 5, 6], "another run has its own");
  });
});

test("without a key it reaches those who wait without one at that moment, and is not kept", async () => {
  const plain = workflow("plain", async function* () {
    return yield* race({ paid: awaitEvent(Paid), late: sleep("1h") });
  });
  const keyed = workflow("keyed", async function* () {
    return yield* race({ paid: awaitEvent(Paid, { key: "a" }), late: sleep("1h") });
  });
  const handling = workflow("handling", async function* (_: undefined, ctx) {
    const heard: number[] = [];
    ctx.on(Paid, (value) => void heard.push(value));
    yield* sleep("1h");
    return heard;
  });
  await inEachCache({ workflows: [plain, keyed, handling] }, async (env) => {
    env.autoSkip = false;
    const runs = [await env.start(plain), await env.start(plain), await env.start(keyed)];
    const handler = await env.start(handling);
    await env.settle();
    assert.equal((await env.publish(Paid, 5)).delivered, 2);
    await handler.send(Paid, 6);
    const late = await env.start(plain);
    await env.settle();
    env.autoSkip = true;
    assert.deepEqual(
      (await Promise.all(runs.map((run) => run.result()))).map(({ winner }) => winner),
      ["paid", "paid", "late"],
    );
    assert.equal((await late.result()).winner, "late");
    assert.deepEqual(await handler.result(), [6]);
  });
});

test("an event that is sent is taken by a wait with a key, and one that is published with another key never is", async () => {
  await inEachCache({ workflows: [paidFor] }, async (env) => {
    const run = await env.start(paidFor, "a");
    await env.settle();
    await env.publish(Paid, 1, { key: "b" });
    await env.publish(Paid, 2);
    await run.send(Paid, 3);
    assert.equal(await run.result(), 3);
  });
});

test("what reached a run and nothing took is shown with its key, and stays for the next wait", async () => {
  const late = workflow("late", async function* () {
    const { winner } = yield* race({ paid: awaitEvent(Paid, { key: "a", match: (value) => value > 10 }), soon: sleep("1m") });
    yield* sleep("1h");
    return [winner, yield* awaitEvent(Paid, { key: "a", timeout: "1m" })];
  });
  await inEachCache({ workflows: [late] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(late);
    await env.settle();
    await env.publish(Paid, 5, { key: "a" });
    await env.settle();
    const about = await run.describe();
    assert.deepEqual(
      about.awaitedEvents.map(({ name, key }) => [name, key]),
      [["paid", "a"]],
    );
    assert.deepEqual(
      about.bufferedEvents.map(({ name, key }) => [name, key]),
      [["paid", "a"]],
    );
    env.autoSkip = true;
    assert.deepEqual(await run.result(), ["soon", 5]);
  });
});

test("a wait that is over in the turn that opens it leaves no row, and one that is cancelled none either", async () => {
  const quick = workflow("quick", async function* () {
    yield* sleep("1m");
    const first = yield* awaitEvent(Note);
    const { winner } = yield* race({ note: awaitEvent(Note, { key: "k" }), echo: echo("x") });
    yield* sleep("1h");
    return [first, winner];
  });
  await inEachCache({ workflows: [quick] }, async (env) => {
    const seen: string[] = [];
    const store = env.bareStore;
    const commit = store.commit.bind(store);
    store.commit = (flush) => {
      for (const { waits, waitsDone } of flush.turns)
        seen.push(...waits.map(({ effect }) => `+${effect}`), ...waitsDone.map((effect) => `-${effect}`));
      return commit(flush);
    };
    const run = await env.start(quick);
    await run.send(Note, "sent");
    assert.deepEqual(await run.result(), ["sent", "echo"]);
    assert.deepEqual(seen, ["+2.0", "-2.0"]);
    assert.equal((await env.publish(Note, "late", { key: "k" })).delivered, 0);
  });
});

test("the same publication is one publication: said again it is answered alike, and another with its key is refused", async () => {
  await inEachCache({ workflows: [paidFor] }, async (env) => {
    const run = await env.start(paidFor, "a");
    await env.settle();
    const first = await env.publish(Paid, 5, { key: "a", idempotencyKey: "p1" });
    const again = await env.publish(Paid, 5, { key: "a", idempotencyKey: "p1" });
    assert.deepEqual([first.id, first.replayed, again], ["p1", false, { ...first, replayed: true }]);
    assert.equal(first.delivered, 1);
    const conflict = { code: "IDEMPOTENCY_CONFLICT", message: /names another publication/ };
    await assert.rejects(env.publish(Paid, 6, { key: "a", idempotencyKey: "p1" }), conflict);
    await assert.rejects(env.publish(Paid, 5, { key: "b", idempotencyKey: "p1" }), conflict);
    await assert.rejects(env.publish(Paid, 5, { idempotencyKey: "p1" }), conflict);
    await assert.rejects(env.publish(Note, "5", { key: "a", idempotencyKey: "p1" }), conflict);
    assert.equal(await run.result(), 5);
    assert.equal(await receivedBy(env, run.id), 1);
  });
});

test("a run publishes to others and to itself, and what it publishes wrongly is an error with its code", async () => {
  const speaker = workflow("speaker", async function* (_: undefined, ctx) {
    const listener = yield* spawn(child(paidFor, "from-speaker"));
    yield* sleep("1m");
    yield* publish(Paid, 9, { key: "from-speaker" });
    yield* publish(Note, "to me", { key: ctx.id });
    const note = yield* awaitEvent(Note, { key: ctx.id });
    yield* publish(Note, "one", { key: "x", idempotencyKey: "shared" });
    const problems: unknown[] = [];
    try {
      yield* publish(Note, "two", { key: "x", idempotencyKey: "shared" });
    } catch (error) {
      if (error instanceof ActivityError) problems.push((error.cause as ApiError).code, error.attempts);
    }
    try {
      yield* publish(Paid, "nine" as never);
    } catch (error) {
      problems.push(error instanceof ValidationError);
    }
    return [yield* listener, note, ...problems];
  });
  await inEachCache({ workflows: [speaker, paidFor] }, async (env) => {
    await env.publish(Note, "one", { key: "x", idempotencyKey: "shared" });
    assert.deepEqual(await env.execute(speaker), [9, "to me", "IDEMPOTENCY_CONFLICT", 1, true]);
  });
});

test("H021 the runs of a chain take each publication once and in order, with gaps or without", async () => {
  const chain = workflow("chain", { input: Type.Array(Type.Number()) }, async function* (seen, ctx) {
    const now = [...seen];
    for (let n = 0; n < 3; n++) now.push(yield* awaitEvent(Paid, { key: "chain" }));
    if (now.length >= 30) return now;
    if (now.length % 2 === 0) yield* sleep("1m");
    return yield* ctx.continueAsNew(now);
  });
  await inEachCache({ workflows: [chain] }, async (env) => {
    for (let n = 0; n < 7; n++) await env.publish(Paid, n, { key: "chain" });
    const run = await env.start(chain, []);
    for (let n = 7; n < 30; n++) {
      await env.publish(Paid, n, { key: "chain", idempotencyKey: `k${n}` });
      await env.publish(Paid, n, { key: "chain", idempotencyKey: `k${n}` });
      if (n % 5 === 0) await env.settle();
      if (n % 11 === 0) await env.restart();
    }
    assert.deepEqual(
      await run.result(),
      Array.from({ length: 30 }, (_, n) => n),
    );
  });
});

test("a hundred kept publications of a key are all taken, and so are those beyond what one look back finds", async () => {
  const many = workflow("many", async function* (count: number) {
    const taken: number[] = [];
    while (taken.length < count) taken.push(yield* awaitEvent(Paid, { key: "many", timeout: "1h" }));
    return taken;
  });
  const picky = workflow("picky", async function* (wanted: number) {
    return yield* awaitEvent(Paid, { key: "many", match: (value) => value === wanted, timeout: "1h" });
  });
  await inCase({ workflows: [many, picky] }, async (env) => {
    for (let n = 0; n < 100; n++) await env.publish(Paid, n, { key: "many" });
    assert.deepEqual(await env.execute(many, 100), [...Array(100).keys()]);
    for (let n = 100; n < 350; n++) await env.publish(Paid, n, { key: "many" });
    const run = await env.start(many, 352);
    const patient = await env.start(picky, 351);
    await env.settle();
    for (let n = 350; n < 352; n++) await env.publish(Paid, n, { key: "many" });
    assert.deepEqual(await run.result(), [...Array(352).keys()]);
    assert.equal(await patient.result(), 351);
    assert.equal(await env.execute(picky, 349), 349, "a wait that wants none of the first hundred looks further");
  });
});

test("H084 ten thousand runs that wait for one key are all told", { timeout: 120_000 }, async () => {
  const waiting = workflow("waiting", async function* () {
    return yield* awaitEvent(Paid, { key: "crowd" });
  });
  await using env = await (await import("@wovyr/testing")).createTestEnvironment({
    workflows: [waiting],
    limits: { cachedInstances: 500 },
  });
  const runs = [];
  for (let first = 0; first < 10_000; first += 1_000)
    runs.push(
      ...(await env.client.startBatch(
        waiting,
        Array.from({ length: 1_000 }, () => ({})),
      )),
    );
  await env.settle();
  const published = await env.publish(Paid, 1, { key: "crowd" });
  assert.equal(published.delivered, 10_000);
  await env.settle();
  const open = await env.bareStore.listInstances("default", { statuses: ["open", "parked"] }, { limit: 1 });
  assert.deepEqual([runs.length, open], [10_000, []]);
});

test("a publication is checked at the door by what any workflow declares; one that fits no wait stays with the run", async () => {
  const Loose = event("paid", Type.String());
  const declaring = workflow("declaring", { events: [Paid] }, async function* () {});
  const other = workflow("other", async function* () {
    return yield* awaitEvent(Loose, { key: "a" });
  });
  await inEachCache({ workflows: [declaring, other] }, async (env) => {
    await assert.rejects(env.publish(Loose, "five", { key: "a" }), { code: "INVALID_INPUT", message: /payload of event "paid"/ });
    const run = await env.start(other);
    await env.settle();
    assert.equal((await env.publish(Paid, 5, { key: "a" })).delivered, 1);
    await env.settle();
    assert.equal((await run.describe()).bufferedEvents.length, 1);
    assert.ok(env.logs.some(({ message }) => /does not fit what the workflow awaits/.test(message)));
    await assert.rejects(run.send(Loose, 5 as never), { code: "INVALID_INPUT" });
    await run.terminate();
  });
  await inCase({ workflows: [other] }, async (env) => {
    assert.ok((await env.publish(Loose, "five", { key: "a" })).id);
    await assert.rejects(env.publish({ name: "no name" } as never), { code: "INVALID_NAME" });
    for (const key of ["", "x".repeat(256), "a\u0000", "\ud800", 5 as never])
      await assert.rejects(env.publish(Loose, "x", { key }), { code: "INVALID_OPTION" });
    await assert.rejects(env.publish(Loose, "x", { kay: "a" } as never), { code: "INVALID_OPTION" });
    await assert.rejects(env.publish(Loose, (() => {}) as never), { code: "PAYLOAD_UNSERIALIZABLE" });
  });
});

test("publications are kept as long as is said, and their ids with them", async () => {
  await inCase({ workflows: [paidFor], publicationRetention: "1 day" }, async (env) => {
    await env.publish(Paid, 1, { key: "a", idempotencyKey: "p" });
    await env.advance("23h");
    assert.equal(await env.execute(paidFor, "a"), 1);
    await env.advance("2h");
    const run = await env.start(paidFor, "a");
    await env.settle();
    assert.equal((await run.describe()).status, "Waiting");
    assert.equal((await env.publish(Paid, 2, { key: "a", idempotencyKey: "p" })).replayed, false);
    assert.equal(await run.result(), 2);
  });
});

test("a parked run keeps its waits: what is published meanwhile is there when it goes on", async () => {
  const before = workflow("parking", async function* () {
    yield* echo("a");
    return yield* all([awaitEvent(Paid, { key: "a" }), awaitEvent(Note)]);
  });
  const wrong = workflow("parking", async function* () {
    yield* sleep("1h");
  });
  await inCase({ workflows: [before] }, async (env) => {
    env.autoSkip = false;
    const run = await env.start(before);
    await env.settle();
    await env.restart({ workflows: [wrong] });
    await env.publish(Paid, 5, { key: "a" });
    assert.equal((await env.publish(Note, "n")).delivered, 1);
    await env.settle();
    assert.equal((await run.describe()).status, "Parked");
    await env.restart({ workflows: [before] });
    assert.deepEqual(await run.result(), [5, "n"]);
  });
});
