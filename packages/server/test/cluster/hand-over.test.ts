import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyWorkflow, activity, all, sleep, workflow } from "@wovyr/sdk";
import type { HistoryFact } from "@wovyr/sdk/internal";
import { HistoryRows } from "@wovyr/server/internal";
import { Gate } from "@wovyr/testing";
import { Cluster, lease } from "./simulation.ts";

const tenant = "default";
const runs = Array.from({ length: 64 }, (_, n) => `run-${n}`);

async function factsOf(cluster: Cluster, id: string): Promise<readonly HistoryFact[]> {
  const store = await cluster.opened();
  const row = await store.findInstance(tenant, id);
  assert.ok(row, id);
  const turns = await new HistoryRows(undefined).decodeAll(await store.readHistory(row, 1, 10_000));
  return turns.flatMap(({ events }) => events);
}

/** A cluster of one node, with a run of a workflow on many shards, and a second node on its way. */
async function oneAndAnother(context: { after(f: () => void): void }, worker: AnyWorkflow, ids = runs) {
  const cluster = new Cluster([worker]);
  context.after(() => cluster.crashAll());
  const first = cluster.join();
  await cluster.until("the first owns all", () => cluster.shares()[0] === 32);
  const start = (id: string) =>
    cluster.ask(id, (operations) => operations.start({ workflow: worker.name, id, input: undefined, idempotencyKey: id }));
  await cluster.answered(Promise.all(ids.map(start)));
  const second = cluster.join();
  return { cluster, first, second };
}

function openAll(gate: Gate<string, string>): void {
  for (const id of gate.waiting) gate.open(id, "done");
}

const ended = async (cluster: Cluster, ids = runs) => {
  const store = await cluster.opened();
  const rows = await Promise.all(ids.map((id) => store.findInstance(tenant, id)));
  return rows.every((row) => row?.closedAt !== undefined);
};

test("attempts that end soon are waited for before their shards go, and none is made again", async (context) => {
  let made = 0;
  let pause = async () => {};
  const soon = activity("soon", async () => {
    made += 1;
    await pause();
  });
  const worker = workflow("worker", async function* () {
    yield* sleep("1s");
    yield* soon();
    yield* sleep("30s");
  });
  const { cluster } = await oneAndAnother(context, worker);
  pause = () => cluster.sleep(300);
  await cluster.until("shares are even", () => cluster.shares().every((share) => share === 16), 20_000);
  await cluster.until("all have ended", () => ended(cluster));
  assert.equal(made, runs.length);
  for (const id of runs) assert.ok((await factsOf(cluster, id)).every(({ type }) => type !== "AttemptLost"));
});

test("attempts that take long keep their shards for a while; then they are made again elsewhere, and count as no loss", async (context) => {
  const gate = new Gate<string, string>();
  const long = activity("long", async (id: string, ctx) => gate.body(id, ctx));
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    return yield* long(ctx.id);
  });
  const { cluster, second } = await oneAndAnother(context, worker);
  await cluster.advance(12_000);
  assert.equal(gate.waiting.length, runs.length, "nothing was stopped yet");
  assert.ok(second.engine !== undefined);
  await cluster.until("shares are even", () => cluster.shares().every((share) => share === 16), 60_000);
  await cluster.until("all have ended", () => {
    openAll(gate);
    return ended(cluster);
  });
  const losses = (await Promise.all(runs.map((id) => factsOf(cluster, id)))).flat().filter((fact) => fact.type === "AttemptLost");
  assert.ok(losses.length > 0);
  assert.ok(losses.every(({ cause }) => cause === "shutdown"));
});

test("an attempt that may run once at most is never stopped so that shares are even", async (context) => {
  const gate = new Gate<string, string>();
  const once = activity("once", { semantics: "atMostOnce" }, async (id: string, ctx) => gate.body(id, ctx));
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    return yield* once(ctx.id);
  });
  const { cluster, second } = await oneAndAnother(context, worker);
  await cluster.advance(120_000);
  assert.equal(gate.waiting.length, runs.length);
  assert.ok((second.engine?.ownership.shards.length ?? 0) < 16);
  openAll(gate);
  await cluster.until("all have ended", () => ended(cluster));
  await cluster.until("shares are even", () => cluster.shares().every((share) => share === 16), 60_000);
  for (const id of runs)
    assert.ok(
      (await factsOf(cluster, id)).some(({ type }) => type === "InstanceCompleted"),
      id,
    );
});

test("a node that closes hands its shards over while its attempts end, and what does not end in time is made again", async (context) => {
  const gate = new Gate<string, string>();
  const long = activity("long", async (id: string, ctx) => gate.body(id, ctx));
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    return yield* long(ctx.id);
  });
  const ids = runs.slice(0, 4);
  const { cluster, first, second } = await oneAndAnother(context, worker, ids);
  await cluster.advance(500);
  void first.close();
  const began = cluster.clock.now();
  await cluster.until("the idle shards have gone over", () => (second.engine?.ownership.shards.length ?? 0) >= 28);
  assert.ok(cluster.clock.now() - began < 1_000, `it took ${cluster.clock.now() - began} ms`);
  await cluster.until("the first is gone", () => first.gone);
  await cluster.until("all have gone over", () => second.engine?.ownership.shards.length === 32);
  await cluster.until("all are made again", () => gate.waiting.length === 2 * ids.length);
  openAll(gate);
  await cluster.until("all have ended", () => ended(cluster, ids));
});

test("H061 a node that cannot reach the store for less than its lease keeps all that runs; for longer, it loses it and writes nothing", async (context) => {
  const gate = new Gate<string, string>();
  const aborted: string[] = [];
  const long = activity("long", async (id: string, ctx) => {
    ctx.signal.addEventListener("abort", () => aborted.push(`${ctx.attempt}`));
    return gate.body(id, ctx);
  });
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    return yield* long(ctx.id);
  });
  const ids = runs.slice(0, 8);
  const { cluster, first, second } = await oneAndAnother(context, worker, ids);
  await cluster.until("the other has a share", () => (second.engine?.ownership.shards.length ?? 0) > 8, 20_000);
  first.cutOff = true;
  await cluster.advance(lease * 0.7);
  first.cutOff = false;
  await cluster.advance(2_000);
  assert.equal(first.engine?.unavailable, undefined);
  assert.deepEqual(aborted, []);
  assert.equal(gate.waiting.length, ids.length);
  first.cutOff = true;
  await cluster.until("its shards are taken", () => second.engine?.ownership.shards.length === 32, 2 * lease);
  assert.equal(first.engine?.ownership.holds, false);
  await cluster.until("its attempts are made again", () => gate.waiting.length > ids.length);
  first.cutOff = false;
  await cluster.until("it is back", () => first.engine?.unavailable === undefined && first.engine?.ownership.holds === true);
  assert.ok(aborted.length > 0, "what it ran is asked to stop");
  openAll(gate);
  await cluster.until("all have ended", () => {
    openAll(gate);
    return ended(cluster, ids);
  });
  for (const id of ids) assert.equal((await factsOf(cluster, id)).filter(({ type }) => type === "ActivityCompleted").length, 1);
});

test("H044 what a node keeps in memory of a shard that went away and came back is not used", async (context) => {
  const said: string[] = [];
  const note = activity("note", async (what: string) => void said.push(what));
  const worker = workflow("worker", async function* (_: undefined, ctx) {
    for (let step = 0; step < 40; step += 1) {
      yield* note(`${ctx.id} ${step}`);
      yield* sleep("2s");
    }
  });
  const { cluster, first } = await oneAndAnother(context, worker);
  for (let round = 0; round < 6; round += 1) {
    await cluster.advance(4_000);
    const [, last] = cluster.alive;
    if (round % 2 === 0) last?.crash();
    else void cluster.join();
    await cluster.advance(8_000);
  }
  await cluster.until("all have ended", () => ended(cluster), 200_000);
  for (const id of runs) {
    const facts = await factsOf(cluster, id);
    assert.equal(facts.filter(({ type }) => type === "ActivityCompleted").length, 40);
    assert.equal(facts.filter(({ type }) => type === "TimerFired").length, 40);
  }
  assert.ok(first.alive);
});

test("two releases side by side: runs of a version that only one of them has go on there, and nothing of them is parked", async (context) => {
  const old = workflow("worker", { version: "1" }, async function* () {
    yield* sleep("5s");
    return "old";
  });
  const fresh = workflow("worker", { version: "2" }, async function* () {
    yield* all([sleep("5s"), sleep("6s")]);
    return "fresh";
  });
  const cluster = new Cluster([]);
  context.after(() => cluster.crashAll());
  for (const release of ["1", "1"]) cluster.join({ workflows: [old], release });
  await cluster.until("shares are even", () => cluster.shares().every((share) => share === 16));
  const upgraded = cluster.join({ workflows: [old, fresh], release: "2" });
  await cluster.until("shares are even", () => Math.max(...cluster.shares()) === 11 && Math.min(...cluster.shares()) === 10, 20_000);
  const engine = upgraded.engine;
  assert.ok(engine);
  // The newer one takes a run of the new version, and is away for a while: an older one gets the shard.
  const ids = runs.filter((id) => engine.mayEnter(engine.shardOf(tenant, id)));
  assert.ok(ids.length > 8);
  let started = 0;
  for (const id of ids)
    void upgraded.operations.start({ workflow: "worker", id, input: undefined }).then(() => {
      started += 1;
    });
  await cluster.until("all are started", () => started === ids.length);
  upgraded.freeze();
  await cluster.until("the others own all", () => cluster.shares().reduce((sum, share) => sum + share, 0) === 32, 20_000);
  await cluster.advance(3_000);
  upgraded.thaw();
  await cluster.until("all have ended", () => ended(cluster, ids), 120_000);
  for (const id of ids) {
    const facts = await factsOf(cluster, id);
    assert.deepEqual(
      facts.filter(({ type }) => type === "Parked" || type === "Resumed"),
      [],
    );
    assert.equal(facts.filter(({ type }) => type === "InstanceCompleted").length, 1);
  }
});
