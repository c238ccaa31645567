/** COMMITs whose answer is lost, tombstones against commits that come late, owners that are none any more. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type ActivityError, activity, race, sleep, workflow } from "@wovyr/sdk";
import { type TcpProxy, tcpProxy } from "@wovyr/testing";
import type postgres from "postgres";
import type { StepEnd, StepWork, Store } from "../../src/engine/ports/store.ts";
import { claim, type Scenario, scenario, start } from "../../src/store/contract/scenario.ts";
import { postgresStore } from "../../src/store/postgres.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";
import { type Stage, stage } from "./stage.ts";

const quick = { maxAttempts: 3, initialDelay: 1, jitter: "none" } as const;
const transactional = { semantics: "transactional", retry: quick } as const;
const lock = 77;

/** Every COMMIT of a transaction that wrote into the ledger waits while the lock is held. */
async function slowCommits({ admin }: Stage): Promise<void> {
  await admin.unsafe(`create function hold() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(${lock}); return null; end $$`);
  await admin.unsafe(
    "create constraint trigger hold after insert on ledger deferrable initially deferred for each row execute function hold()",
  );
}

/** Runs the body while COMMITs wait; `release` lets them go on before its end. */
async function whileCommitsWait(sql: postgres.Sql, body: (release: () => Promise<void>) => Promise<void>): Promise<void> {
  const session = await sql.reserve();
  await session`select pg_advisory_lock(${lock})`;
  let held = true;
  const release = async () => {
    if (held) await session`select pg_advisory_unlock(${lock})`;
    held = false;
  };
  try {
    await body(release);
  } finally {
    await release();
    session.release();
  }
}

/** Runs the body while somebody else holds the rows of the accounts. */
async function whileTaken<T>({ admin }: Stage, body: () => Promise<T>): Promise<T> {
  const session = await admin.reserve();
  await session`begin`;
  await session`select from accounts for update`;
  try {
    return await body();
  } finally {
    await session`rollback`;
    session.release();
  }
}

async function proxyTo(context: TestContext, { url }: Stage): Promise<TcpProxy> {
  const proxy = await tcpProxy(url);
  context.after(() => proxy.close());
  return proxy;
}

/** A workflow that writes once, and how often its function was called. */
function writer(options: object = {}) {
  const calls = { count: 0 };
  const write = activity("write", { ...transactional, ...options }, async (_: undefined, { tx, attempt }) => {
    calls.count += 1;
    await tx`insert into ledger (note) values (${`attempt ${attempt}`})`;
    return attempt;
  });
  const writing = workflow("writing", async function* () {
    try {
      return yield* write(undefined);
    } catch (error) {
      return (error as ActivityError).cause instanceof Error ? ((error as ActivityError).cause as Error & { code?: string }).code : "?";
    }
  });
  return { calls, write, writing };
}

test("a COMMIT that is done and whose answer is lost is found out by its outcome; the function is called once", async (context) => {
  const place = await stage(context);
  const proxy = await proxyTo(context, place);
  const { calls, writing } = writer();
  const { client } = await place.host([writing], { url: (url) => proxy.url(url) });
  await slowCommits(place);
  const run = await whileStarting(place, async (release) => {
    const started = await client.start(writing);
    await place.waiting("commit");
    proxy.loseAnswers();
    await release();
    return started;
  });
  assert.equal(await run.result(), 1);
  assert.deepEqual([calls.count, await place.notes()], [1, ["attempt 1"]]);
});

test("a COMMIT that is under way when its connection is lost is ended; the next attempt does it", async (context) => {
  const place = await stage(context);
  const proxy = await proxyTo(context, place);
  const { calls, writing } = writer();
  const { client } = await place.host([writing], { url: (url) => proxy.url(url) });
  await slowCommits(place);
  const run = await whileStarting(place, async () => {
    const started = await client.start(writing);
    await place.waiting("commit");
    proxy.dropClients();
    await until(() => calls.count === 2);
    return started;
  });
  assert.equal(await run.result(), 2);
  assert.deepEqual([calls.count, await place.notes()], [2, ["attempt 2"]]);
});

test("an attempt that runs out of time at a lock lets go of what it holds, and the next one works", async (context) => {
  const place = await stage(context);
  await place.admin`insert into accounts values ('a', 0)`;
  const add = activity("add", { ...transactional, timeout: { startToClose: 400 } }, async (_: undefined, { tx, attempt }) => {
    await tx`insert into ledger (note) values (${`attempt ${attempt}`})`;
    await tx`update accounts set balance = balance + 1 where name = 'a'`;
  });
  const adding = workflow("adding", async function* () {
    yield* add(undefined);
  });
  const { client } = await place.host([adding], { store: { transactions: { max: 1 } } });
  const run = await whileTaken(place, async () => {
    const started = await client.start(adding);
    await place.waiting("update accounts");
    const [first] = await place.admin`select pid from pg_stat_activity where wait_event_type = 'Lock' and query like 'update accounts%'`;
    // The session of the first attempt is ended, although nobody has let go of the lock.
    await until(async () => (await place.admin`select from pg_stat_activity where pid = ${first?.pid}`).length === 0);
    return started;
  });
  await run.result();
  assert.deepEqual([...(await place.admin`select balance from accounts`)], [{ balance: 1 }]);
  assert.equal((await place.notes()).length, 1);
});

test("an attempt that ran out of time while it committed is what the activity came to, not its timeout", async (context) => {
  const place = await stage(context);
  const { calls, writing } = writer({ timeout: { startToClose: 300 }, retry: { maxAttempts: 1 } });
  const { client } = await place.host([writing]);
  await slowCommits(place);
  const run = await whileStarting(place, async (release) => {
    const started = await client.start(writing);
    await place.waiting("commit");
    await place.waiting("save_step_outcome_1");
    await release();
    return started;
  });
  assert.equal(await run.result(), 1);
  assert.deepEqual([calls.count, await place.notes()], [1, ["attempt 1"]]);
});

test("an attempt that runs out of time for good is given up before that is recorded, and what it wrote is not there", async (context) => {
  const place = await stage(context);
  const gate = opening();
  const slow = activity("slow", { ...transactional, timeout: { scheduleToClose: 300 } }, async (_: undefined, { tx }) => {
    await tx`insert into ledger (note) values ('late')`;
    await gate.opened;
    return "late";
  });
  const waiting = workflow("waiting", async function* () {
    try {
      return yield* slow(undefined);
    } catch (error) {
      return (error as ActivityError).kind;
    }
  });
  const { client } = await place.host([waiting]);
  const run = await client.start(waiting);
  assert.equal(await run.result(), "timeout");
  assert.deepEqual(await place.outcomes(run.runId), [null]);
  gate.open();
  assert.deepEqual(await place.notes(), []);
});

test("a loser of a race that is cancelled before its COMMIT is not done", async (context) => {
  const place = await stage(context);
  const gate = opening();
  const slow = activity("slow", transactional, async (_: undefined, { tx }) => {
    await tx`insert into ledger (note) values ('late')`;
    await gate.opened;
    return "late";
  });
  const racing = workflow("racing", async function* () {
    return (yield* race({ slow: slow(undefined), sleep: sleep(200) })).winner;
  });
  const { client } = await place.host([racing]);
  const run = await client.start(racing);
  assert.equal(await run.result(), "sleep");
  gate.open();
  assert.deepEqual(await place.outcomes(run.runId), [null]);
  assert.deepEqual(await place.notes(), []);
});

test("a step that commits before its run gives it up is told to the run first: a cancel undoes it by its compensation", async (context) => {
  const place = await stage(context);
  const { write } = writer();
  const undo = activity("undo", transactional, async (attempt: number, { tx }) => {
    await tx`insert into ledger (note) values (${`undone ${attempt}`})`;
  });
  const paying = workflow("paying", { compensation: { on: "cancel" } }, async function* () {
    yield* write(undefined).compensate((attempt) => undo(attempt));
    yield* sleep("1h");
  });
  const { client } = await place.host([paying]);
  await slowCommits(place);
  const run = await whileStarting(place, async (release) => {
    const started = await client.start(paying);
    await place.waiting("commit");
    const cancelled = started.cancel();
    await place.waiting("save_step_outcome_1");
    await release();
    await cancelled;
    return started;
  });
  await assert.rejects(run.result());
  assert.deepEqual(await place.notes(), ["attempt 1", "undone 1"]);
  const types: string[] = [];
  for await (const { type } of run.history()) types.push(type);
  assert.ok(types.indexOf("ActivityCompleted") < types.indexOf("CancelRequested"), types.join());
});

test("a run that is terminated while a step commits is told that the step was done", async (context) => {
  const place = await stage(context);
  const { writing } = writer();
  const { client } = await place.host([writing]);
  await slowCommits(place);
  const run = await whileStarting(place, async (release) => {
    const started = await client.start(writing);
    await place.waiting("commit");
    const ended = started.terminate();
    await place.waiting("save_step_outcome_1");
    await release();
    await ended.catch(() => {});
    return started;
  });
  await run.result().catch(() => {});
  const types: string[] = [];
  for await (const { type } of run.history()) types.push(type);
  assert.ok(types.includes("ActivityCompleted"), types.join());
  assert.deepEqual(await place.notes(), ["attempt 1"]);
});

function opening() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

async function whileStarting<T>(place: Stage, body: (release: () => Promise<void>) => Promise<T>): Promise<T> {
  let result: T | undefined;
  await whileCommitsWait(place.admin, async (release) => {
    result = await body(release);
  });
  return result as T;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const patience = performance.now() + 20_000;
  while (performance.now() < patience) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("it did not happen");
}

// ─── the transactions of the store itself ───

type Ground = {
  readonly place: Stage;
  readonly store: Store;
  readonly at: Scenario;
  readonly key: { readonly tenant: string; readonly run: string; readonly effect: string };
  step(work: StepWork["work"], details?: Partial<StepWork>): Promise<StepEnd>;
};

/** A run in a store, and an attempt of its step. */
async function ground(context: TestContext): Promise<Ground> {
  const place = await stage(context);
  const store = await postgresStore(place.url).open(contractStoreOptions);
  context.after(() => store.close());
  const at = await scenario(store);
  const { tenant, run } = await start(at);
  const key = { tenant, run, effect: "1" };
  const [owned] = at.fence;
  const { transactions } = store;
  assert.ok(owned !== undefined && transactions !== undefined);
  const signal = new AbortController().signal;
  const step: Ground["step"] = (work, details = {}) => transactions.run({ ...key, ...owned, now: () => 5, signal, work, ...details });
  return { place, store, at, key, step };
}

const insert = (note: string, then: () => Promise<unknown> = async () => {}): StepWork["work"] => {
  return async (tx) => {
    await tx`insert into ledger (note) values (${note})`;
    await then();
    return `"${note}"`;
  };
};

test("a tombstone that is there before the commit wins: the late attempt is rolled back", async (context) => {
  const { place, store, key, step } = await ground(context);
  const end = await step(insert("late", () => store.saveStepOutcome({ ...key, at: 1, outcome: null })));
  assert.deepEqual(end, { kind: "givenUp" });
  assert.deepEqual(await place.notes(), []);
  assert.deepEqual(await step(insert("later")), { kind: "givenUp" });
  assert.deepEqual(await place.notes(), []);
});

test("a tombstone that comes while an outcome is being committed waits for it, and loses", async (context) => {
  const { place, store, key, step } = await ground(context);
  await slowCommits(place);
  const [end, saved] = await whileStarting(place, async (release) => {
    const ended = step(insert("first"));
    await place.waiting("commit");
    const buried = store.saveStepOutcome({ ...key, at: 1, outcome: null });
    await place.waiting("save_step_outcome_1");
    await release();
    return Promise.all([ended, buried]);
  });
  assert.deepEqual(end, { kind: "committed", outcome: '"first"' });
  assert.deepEqual(saved, { won: false, outcome: '"first"' });
  assert.deepEqual(await place.notes(), ["first"]);
});

test("a commit that comes while a tombstone is being put waits for it, and is rolled back", async (context) => {
  const { place, key, step } = await ground(context);
  const buried = await place.admin.reserve();
  await buried`begin`;
  await buried`insert into wovyr.step_outcomes (tenant, run, effect, at) values (${key.tenant}, ${key.run}, '1', 1)`;
  const ended = step(insert("late"));
  await place.waiting("insert into wovyr.step_outcomes");
  await buried`commit`;
  buried.release();
  assert.deepEqual(await ended, { kind: "givenUp" });
  assert.deepEqual(await place.notes(), []);
});

test("of two attempts of one step at once one commits, and both learn what it came to", async (context) => {
  const { place, step } = await ground(context);
  const ends = await Promise.all(["a", "b", "c"].map((note) => step(insert(note))));
  assert.equal(new Set(ends.map((end) => JSON.stringify(end))).size, 1);
  assert.equal(ends[0]?.kind, "committed");
  assert.equal((await place.notes()).length, 1);
});

test("an owner whose shard was taken over cannot commit", async (context) => {
  const { place, at, step, key, store } = await ground(context);
  const end = await step(insert("stale", () => claim(at, "another", { dead: [at.owner] })));
  assert.deepEqual(end, { kind: "notOwner" });
  assert.deepEqual(await place.notes(), []);
  assert.deepEqual(await store.readStepOutcomes(key), []);
});

test("a takeover leaves a commit that has passed the fence alone until it is over, and finds its outcome", async (context) => {
  const { place, at, step, key, store } = await ground(context);
  await slowCommits(place);
  await whileStarting(place, async (release) => {
    const ended = step(insert("in time"));
    await place.waiting("commit");
    const before = await claim(at, "another", { dead: [at.owner] });
    assert.deepEqual(
      before.held.map(({ shard, owner }) => [shard, owner]),
      [[at.shards[0], at.owner]],
    );
    await release();
    assert.equal((await ended).kind, "committed");
    assert.equal((await claim(at, "another", { dead: [at.owner] })).granted.length, at.fence.length);
  });
  assert.deepEqual(await place.notes(), ["in time"]);
  assert.equal((await store.readStepOutcomes(key)).length, 1);
});

test("an attempt that is no longer wanted is rolled back, at a lock too, and its connection is free for others", async (context) => {
  const { place, step } = await ground(context);
  await place.admin`insert into accounts values ('a', 0)`;
  const controller = new AbortController();
  await whileTaken(place, async () => {
    const ended = step(
      async (tx) => {
        await tx`insert into ledger (note) values ('unwanted')`;
        await tx`update accounts set balance = 2`;
        return "1";
      },
      { signal: controller.signal },
    );
    await place.waiting("update accounts set balance = 2");
    controller.abort(new Error("no longer wanted"));
    await assert.rejects(ended, /no longer wanted/);
    const active = () => place.admin`select from pg_stat_activity where query like 'update accounts set balance = 2%' and state = 'active'`;
    await until(async () => (await active()).length === 0);
  });
  assert.deepEqual(await place.notes(), []);
  assert.equal((await step(insert("wanted"))).kind, "committed");
});
