import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, type ConcurrencyOptions, child, settled, type WorkflowError, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import fc from "fast-check";
import { inCase, inEachCache } from "./case.ts";

type Job = { readonly id: string; readonly customer: string };

function limited(concurrency: ConcurrencyOptions<Job>) {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const worker = workflow("worker", { concurrency }, async function* (job: Job) {
    return yield* work(job.id);
  });
  return { gate, worker };
}

const job = (id: string, customer = "c"): Job => ({ id, customer });

test("at most so many runs of a workflow are at work; the others wait for their turn, in order, and can be seen", async () => {
  const { gate, worker } = limited({ limit: 2 });
  await inEachCache({ workflows: [worker] }, async (env) => {
    const runs = [];
    for (const id of ["a", "b", "c", "d"]) runs.push(await env.start(worker, job(id), { id }));
    await env.until(() => gate.waiting.length === 2);
    await env.settle();
    assert.deepEqual(gate.waiting, ["a", "b"]);
    const third = await runs[2]?.describe();
    assert.deepEqual([third?.status, third?.waitingFor], ["Scheduled", { kind: "concurrency", of: "worker" }]);
    const listed: string[] = [];
    for await (const { id } of env.client.list({ status: "Scheduled" })) listed.push(id);
    assert.deepEqual(listed.sort(), ["c", "d"]);
    assert.equal((await runs[2]?.graph())?.nodes.find(({ kind }) => kind === "start")?.state, "Scheduled");
    gate.open("b", "b");
    await env.until(() => gate.waiting.includes("c"));
    assert.deepEqual(gate.waiting, ["a", "c"]);
    for (const id of ["a", "c", "d"]) {
      await env.until(() => gate.waiting.includes(id));
      gate.open(id, id);
    }
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), ["a", "b", "c", "d"]);
  });
});

test("each key has a limit of its own, and children wait for their turn as well", async () => {
  const { gate, worker } = limited({ limit: 1, key: ({ customer }) => customer });
  const parent = workflow("parent", async function* () {
    const both = yield* settled([child(worker, job("1", "a")), child(worker, job("2", "a")), child(worker, job("3", "b"))]);
    return both.map((each) => (each.status === "fulfilled" ? each.value : each.reason.message));
  });
  await inCase({ workflows: [worker, parent] }, async (env) => {
    const run = await env.start(parent);
    await env.until(() => gate.waiting.length === 2);
    await env.settle();
    assert.equal(gate.waiting.length, 2);
    for (let done = 0; done < 3; done += 1) {
      await env.until(() => gate.waiting.length > 0);
      const [id] = gate.waiting as [string];
      gate.open(id, id);
    }
    assert.deepEqual(await run.result(), ["1", "2", "3"]);
  });
});

for (const how of ["completed", "cancelled", "terminated", "continued"] as const)
  test(`H118 the turn of the next comes when a run was ${how}`, async () => {
    const gate = new Gate<string, string>();
    const work = activity("work", gate.body);
    const worker = workflow("worker", { concurrency: { limit: 1 } }, async function* (id: string, ctx) {
      const said = yield* work(id);
      if (said === "again") yield* ctx.continueAsNew("again");
      return said;
    });
    await inCase({ workflows: [worker] }, async (env) => {
      const first = await env.start(worker, "first");
      const second = await env.start(worker, "second");
      await env.until(() => gate.waiting.includes("first"));
      await env.settle();
      assert.deepEqual(gate.waiting, ["first"]);
      if (how === "completed") gate.open("first", "done");
      else if (how === "continued") gate.open("first", "again");
      else if (how === "cancelled") await first.cancel();
      else await first.terminate();
      await env.until(() => gate.waiting.includes("second"));
      gate.open("second", "second");
      assert.equal(await second.result(), "second");
      if (how !== "continued") return;
      await env.until(() => gate.waiting.includes("again"));
      gate.open("again", "done");
      assert.equal(await first.result(), "done");
    });
  });

test("runs that wait outlive crashes, and none begins beside those that are at work", async () => {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = activity("work", (id: string) => {
    begun.push(id);
    return new Promise<string>((end) => ends.set(id, () => end(id)));
  });
  const worker = workflow("worker", { concurrency: { limit: 1 } }, async function* (id: string) {
    return yield* work(id);
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const runs = [];
    for (const id of ["a", "b", "c"]) runs.push(await env.start(worker, id));
    await env.until(() => begun.length === 1);
    env.crash();
    await env.restart();
    await env.until(() => begun.length === 2);
    assert.deepEqual(begun, ["a", "a"]);
    ends.get("a")?.();
    await env.until(() => begun.length === 3);
    env.crash();
    await env.restart();
    await env.until(() => begun.length === 4);
    assert.deepEqual(begun.slice(2), ["b", "b"]);
    ends.get("b")?.();
    await env.until(() => begun.length === 5);
    ends.get("c")?.();
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), ["a", "b", "c"]);
  });
});

test("what comes newest is cancelled, when that is asked for", async () => {
  const { gate, worker } = limited({ limit: 1, onLimit: "cancelNewest" });
  await inCase({ workflows: [worker] }, async (env) => {
    const first = await env.start(worker, job("a"));
    await gate.arrived("a");
    const second = await env.start(worker, job("b"));
    await assert.rejects(second.result(), (error: WorkflowError) => {
      assert.equal(error.status, "Cancelled");
      assert.equal((error.cause as { code?: string }).code, "CONCURRENCY_LIMIT");
      return true;
    });
    gate.open("a", "a");
    assert.equal(await first.result(), "a");
  });
});

test("what has been at work longest is cancelled, when that is asked for, and the newest begins when it has ended", async () => {
  const { gate, worker } = limited({ limit: 1, onLimit: "cancelInProgress" });
  await inCase({ workflows: [worker] }, async (env) => {
    const first = await env.start(worker, job("a"));
    await gate.arrived("a");
    const second = await env.start(worker, job("b"));
    await assert.rejects(first.result(), /a newer run takes its place/);
    await env.until(() => gate.waiting.includes("b"));
    gate.open("b", "b");
    assert.equal(await second.result(), "b");
    gate.open("a", "nobody hears it");
  });
});

test("a run that waits is cancelled and terminated like any other, and one that is delayed waits for its turn when it is due", async () => {
  const { gate, worker } = limited({ limit: 1 });
  await inCase({ workflows: [worker] }, async (env) => {
    const first = await env.start(worker, job("a"));
    await gate.arrived("a");
    const waiting = await env.start(worker, job("b"));
    const late = await env.start(worker, job("late"), { delay: "1h" });
    await env.settle();
    await waiting.cancel();
    await assert.rejects(waiting.result(), { status: "Cancelled" });
    await env.advance("2h");
    assert.deepEqual((await late.describe()).waitingFor, { kind: "concurrency", of: "worker" });
    gate.open("a", "a");
    await env.until(() => gate.waiting.includes("late"));
    gate.open("late", "late");
    assert.deepEqual([await first.result(), await late.result()], ["a", "late"]);
  });
});

test("a key that is none fails the run and says so", async () => {
  const { worker } = limited({ limit: 1, key: () => 1 as never });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker, job("a"));
    await assert.rejects(run.result(), (error: WorkflowError) => (error.cause as { code?: string }).code === "INVALID_OPTION");
  });
});

test("never more runs are at work than may, and all of them come to their end, whatever the crashes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.nat(5), { maxLength: 3 }),
      async (limit, count, crashes) => {
        const worker = workflow("worker", { concurrency: { limit } }, async function* (id: number) {
          yield* settled([step()]);
          return id;
        });
        const step = activity("step", async () => 1);
        await inCase({ workflows: [worker] }, async (env) => {
          const runs = [];
          for (let id = 0; id < count; id += 1) {
            runs.push(await env.start(worker, id, { id: `r${id}` }));
            if (!crashes.includes(id)) continue;
            env.crash();
            await env.restart();
          }
          const again = runs.map(({ id }) => env.handle(worker, id));
          assert.deepEqual(
            await Promise.all(again.map((run) => run.result())),
            runs.map((_, id) => id),
          );
          const spans = await Promise.all(
            runs.map(async ({ id }) => {
              const facts = (await env.turns(id)).flatMap(({ at, events }) => events.map((fact) => ({ at, type: fact.type })));
              return { from: facts.find(({ type }) => type === "AdmissionDecided")?.at ?? 0, to: facts.at(-1)?.at ?? 0 };
            }),
          );
          for (const { from } of spans) assert.ok(spans.filter((other) => other.from < from && other.to > from).length < limit);
        });
      },
    ),
    { numRuns: 25 },
  );
});
