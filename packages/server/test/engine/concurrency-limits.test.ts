import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActivityError, activity, all, type ConcurrencyOptions, settled, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import { memoryStore } from "../../src/index.ts";
import { inCase, inEachCache } from "./case.ts";

type Job = { readonly id: string; readonly customer: string };

/** A workflow whose every activity waits for the test, with the most that ran at once. */
function limited(concurrency: ConcurrencyOptions<Job>, options: object = {}) {
  const gate = new Gate<string, string>();
  let most = 0;
  let running = 0;
  const work = activity("work", { concurrency, ...options }, async (job: Job, ctx) => {
    running += 1;
    most = Math.max(most, running);
    try {
      return await gate.body(job.id, ctx);
    } finally {
      running -= 1;
    }
  });
  const worker = workflow("worker", async function* (jobs: Job[]) {
    const outcomes = yield* settled(jobs.map((job) => work(job)));
    return outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : told(outcome.reason)));
  });
  return { gate, work, worker, most: () => most };
}

const told = (error: Error) => {
  const { cause, attempts } = error as ActivityError;
  return { code: (cause as { code?: string }).code, attempts };
};

const jobs = (count: number, customer = "c"): Job[] => Array.from({ length: count }, (_, at) => ({ id: `${customer}${at}`, customer }));

test("at most so many attempts of an activity run at once; the others begin in order", async () => {
  const { gate, worker, most } = limited({ limit: 2 });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, jobs(5));
    await env.until(() => gate.waiting.length === 2);
    await env.settle();
    assert.deepEqual(gate.waiting, ["c0", "c1"]);
    gate.open("c1", "b");
    await gate.arrived("c2");
    assert.deepEqual(gate.waiting, ["c0", "c2"]);
    for (const id of ["c0", "c2", "c3", "c4"]) {
      await gate.arrived(id);
      gate.open(id, id);
    }
    assert.deepEqual(await run.result(), ["c0", "b", "c2", "c3", "c4"]);
    assert.equal(most(), 2);
  });
});

test("a limit holds over all runs, and apart for each key", async () => {
  const { gate, worker } = limited({ limit: 1, key: ({ customer }) => customer });
  await inCase({ workflows: [worker] }, async (env) => {
    const runs = [
      await env.start(worker, jobs(2, "a")),
      await env.start(worker, jobs(2, "b")),
      await env.start(worker, [{ id: "a9", customer: "a" }]),
    ];
    await env.until(() => gate.waiting.length === 2);
    await env.settle();
    assert.deepEqual(gate.waiting.toSorted(), ["a0", "b0"]);
    const described = (await runs[0]?.describe())?.activities.find(({ effect }) => effect === "0.1");
    assert.deepEqual(described?.waitingFor, { kind: "concurrency", of: "work", key: "a" });
    for (const id of ["a0", "a1", "a9", "b0", "b1"]) {
      await gate.arrived(id);
      gate.open(id, id);
    }
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), [["a0", "a1"], ["b0", "b1"], ["a9"]]);
  });
});

test("activities that name one scope share a limit", async () => {
  const gate = new Gate<string, string>();
  const concurrency = { limit: 1, scope: "printer" };
  const [first, second] = [activity("first", { concurrency }, gate.body), activity("second", { concurrency }, gate.body)];
  const worker = workflow("worker", async function* () {
    return yield* all([first("one"), second("two")]);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived("one");
    await env.settle();
    assert.deepEqual(gate.waiting, ["one"]);
    gate.open("one", "1");
    await gate.arrived("two");
    gate.open("two", "2");
    assert.deepEqual(await run.result(), ["1", "2"]);
  });
});

test("what comes newest is cancelled, when that is asked for: it fails for good with CONCURRENCY_LIMIT, and never began", async () => {
  const { gate, worker } = limited({ limit: 1, onLimit: "cancelNewest" }, { retry: { maxAttempts: 5 } });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, jobs(3));
    await gate.arrived("c0");
    await env.settle();
    gate.open("c0", "done");
    const cancelled = { code: "CONCURRENCY_LIMIT", attempts: 1 };
    assert.deepEqual(await run.result(), ["done", cancelled, cancelled]);
    const failed = (await env.turns(run.id)).flatMap(({ events }) => events).filter((fact) => fact.type === "ActivityFailed");
    assert.deepEqual(
      failed.map(({ noRetry }) => noRetry),
      ["concurrencyLimit", "concurrencyLimit"],
    );
    const next = await env.start(worker, jobs(1, "d"));
    await gate.arrived("d0");
    gate.open("d0", "free again");
    assert.deepEqual(await next.result(), ["free again"]);
  });
});

test("what runs longest is cancelled, when that is asked for, and the newest takes its place", async () => {
  const { gate, worker, most } = limited({ limit: 2, onLimit: "cancelInProgress" }, { retry: { maxAttempts: 5 } });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const first = await env.start(worker, jobs(2, "a"));
    await env.until(() => gate.waiting.length === 2);
    const second = await env.start(worker, jobs(1, "b"));
    await gate.arrived("b0");
    gate.open("b0", "newest");
    assert.deepEqual(await second.result(), ["newest"]);
    gate.open("a1", "stayed");
    assert.deepEqual(await first.result(), [{ code: "CONCURRENCY_LIMIT", attempts: 1 }, "stayed"]);
    gate.open("a0", "nobody hears it");
    assert.ok(most() <= 3, "one that was stopped may take a moment to notice");
  });
});

test("of many that would take the place of others only as many begin as there are places", async () => {
  const { gate, worker } = limited({ limit: 1, onLimit: "cancelInProgress" });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, jobs(4));
    await gate.arrived("c3");
    gate.open("c3", "last");
    const cancelled = { code: "CONCURRENCY_LIMIT", attempts: 1 };
    assert.deepEqual(await run.result(), [cancelled, cancelled, cancelled, "last"]);
    assert.ok(gate.calls <= 2);
  });
});

test("H118 the time limits of an attempt go on while it waits for a permit", async () => {
  const { gate, worker } = limited({ limit: 1 }, { timeout: { scheduleToStart: "1m" } });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, jobs(2));
    await gate.arrived("c0");
    await env.advance("2m");
    gate.open("c0", "done");
    const [done, late] = (await run.result()) as [string, { code: string }];
    assert.deepEqual([done, late.code, gate.calls], ["done", "TIMED_OUT", 1]);
  });
});

for (const how of ["cancelled", "terminated", "timed out"] as const)
  test(`H118 a permit is free when its holder was ${how}`, async () => {
    const { gate, worker } = limited({ limit: 1 }, { timeout: { startToClose: "1m" }, retry: { maxAttempts: 1 } });
    await inCase({ workflows: [worker] }, async (env) => {
      const holder = await env.start(worker, jobs(1, "h"));
      await gate.arrived("h0");
      const next = await env.start(worker, jobs(1, "n"));
      await env.settle();
      assert.deepEqual(gate.waiting, ["h0"]);
      if (how === "cancelled") await holder.cancel();
      else if (how === "terminated") await holder.terminate();
      else await env.advance("1m");
      await env.until(() => gate.waiting.includes("n0"));
      gate.open("n0", "next");
      assert.deepEqual(await next.result(), ["next"]);
      gate.open("h0", "too late");
    });
  });

test("H118 a permit is free when its holder lost its process, and what ran with it runs again within the limit", async () => {
  const calls: { readonly id: string; readonly end: () => void }[] = [];
  const work = activity(
    "work",
    { concurrency: { limit: 1 } },
    (id: string) => new Promise<string>((end) => calls.push({ id, end: () => end(id) })),
  );
  const worker = workflow("worker", async function* (id: string) {
    return yield* work(id);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const runs = [await env.start(worker, "first"), await env.start(worker, "second")];
    await env.until(() => calls.length === 1);
    env.crash();
    await env.restart();
    for (const made of [2, 3]) {
      await env.until(() => calls.length === made);
      await env.settle();
      assert.equal(calls.length, made);
      calls[made - 1]?.end();
    }
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), ["first", "second"]);
  });
});

test("attempts that wait for a limit take no place", async () => {
  const { gate, work } = limited({ limit: 1 });
  const other = activity("other", async () => "other");
  const worker = workflow("worker", async function* () {
    const outcomes = yield* all([...jobs(3).map((job) => work(job)), other()]);
    return outcomes.length;
  });
  await inCase({ workflows: [worker], limits: { activities: 2 } }, async (env) => {
    const run = await env.start(worker);
    await gate.arrived("c0");
    await env.until(async () => (await env.state(run.id)).activities.size === 3);
    for (const id of ["c0", "c1", "c2"]) {
      await gate.arrived(id);
      gate.open(id, id);
    }
    assert.equal(await run.result(), 4);
  });
});

test("a key that is none fails its activity for good and says so", async () => {
  const { worker } = limited({ limit: 1, key: () => 5 as never });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, jobs(1));
    assert.deepEqual(await run.result(), [{ code: "INVALID_OPTION", attempts: 1 }]);
  });
});

test("a tenant's limit holds over all its activities", async () => {
  const gate = new Gate<string, string>();
  const [a, b] = [activity("a", gate.body), activity("b", gate.body)];
  const worker = workflow("worker", async function* () {
    return yield* all([a("1"), b("2"), a("3")]);
  });
  await inCase({ workflows: [worker], tenantLimits: { concurrency: 2 } }, async (env) => {
    const run = await env.start(worker);
    await env.until(() => gate.waiting.length === 2);
    await env.settle();
    assert.deepEqual(gate.waiting, ["1", "2"]);
    for (const id of ["1", "2", "3"]) {
      await gate.arrived(id);
      gate.open(id, id);
    }
    assert.deepEqual(await run.result(), ["1", "2", "3"]);
  });
});

test("H118 permits that a node that died held are free when its lease ends, to whoever comes after it", async () => {
  const provider = { ...memoryStore(), shared: true };
  const { gate, worker } = limited({ limit: 1 });
  await inCase({ workflows: [worker], store: provider, lease: "10s" }, async (env) => {
    const name = JSON.stringify(["activity", "default", "work"]);
    const ask = { tenant: "default", name, capacity: 1, inUse: 0, wanted: 1, oldest: 0, evicts: false };
    await env.bareStore.exchangePermits("elsewhere", 10_000, [ask]);
    const run = await env.start(worker, jobs(1));
    const from = env.now().getTime();
    await env.until(() => gate.waiting.includes("c0"));
    assert.ok(env.now().getTime() - from >= 9_000, "it waited for the lease");
    assert.ok(env.now().getTime() - from <= 12_000, "and no longer");
    gate.open("c0", "c0");
    await run.result();
  });
});
