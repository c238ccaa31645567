/** Nodes over two databases, of which one is away for a while, in virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, child, event, race, sleep, Type, workflow } from "@wovyr/sdk";
import type { Operations } from "@wovyr/sdk/internal";
import { shardOf } from "../../src/engine/shard-of.ts";
import { Cluster, lease } from "./simulation.ts";

const shards = 32;
const placeOf = (id: string) => shardOf("default", id, shards) % 2;
/** An id that belongs to a database. */
const idIn = (place: number, prefix: string): string => {
  for (let n = 0; ; n += 1) if (placeOf(`${prefix}-${n}`) === place) return `${prefix}-${n}`;
};

const ran: string[] = [];
const note = activity("note", async (text: string) => {
  ran.push(text);
  return text;
});
const leaf = workflow("leaf", async function* (text: string) {
  yield* sleep(500);
  return yield* note(text);
});
const parent = workflow("parent", async function* ({ of, times }: { of: string; times: number }) {
  const all: string[] = [];
  for (let n = 0; n < times; n += 1) all.push(yield* child(leaf, `${of} ${n}`, { id: `${of}.${n}` }));
  return all;
});
const endless = workflow("endless", async function* () {
  yield* sleep("1 day");
});
const impatient = workflow("impatient", async function* (of: string) {
  const { winner } = yield* race({ done: child(endless, undefined, { id: of }), late: sleep(300) });
  return winner;
});
const Told = event("told", Type.Number());
const listener = workflow("listener", async function* (count: number) {
  const heard: number[] = [];
  while (heard.length < count) heard.push(yield* awaitEvent(Told, { key: "k" }));
  return heard;
});

async function started(nodes: number): Promise<Cluster> {
  ran.length = 0;
  const cluster = new Cluster([leaf, parent, endless, impatient, listener], 1, 2);
  for (let n = 0; n < nodes; n += 1) cluster.join();
  await cluster.until("the shards are spread", () => cluster.shares().every((share) => share === shards / nodes));
  return cluster;
}

const ask = <T>(cluster: Cluster, id: string, call: (operations: Operations) => Promise<T>) => cluster.answered(cluster.ask(id, call));

const start = (cluster: Cluster, workflow: string, id: string, input?: unknown) =>
  ask(cluster, id, (operations) => operations.start({ workflow, id, input, idempotencyKey: id }));

async function output(cluster: Cluster, id: string): Promise<unknown> {
  for (let tries = 0; tries < 60; tries += 1) {
    const result = await ask(cluster, id, (operations) => operations.result(id, { wait: 1_000 }));
    if (result.status === "Completed") return (result as { readonly output?: unknown }).output;
  }
  return assert.fail(`${id} did not end`);
}

/** Under which the nodes own their shards. */
const epochs = (cluster: Cluster): ReadonlyMap<number, number> =>
  new Map(
    cluster.nodes.flatMap(({ engine }) =>
      (engine?.ownership.shards ?? []).map((shard) => [shard, engine?.ownership.epochOf(shard) ?? 0] as const),
    ),
  );

async function nothingIsLeft(cluster: Cluster): Promise<void> {
  await cluster.advance(5_000);
  const store = await cluster.opened();
  const everything = Array.from({ length: shards }, (_, shard) => shard);
  assert.deepEqual(await store.listInbox(everything, { limit: 10 }), []);
  for (const database of await cluster.parts())
    for (const target of [0, 1]) assert.deepEqual(await database.part?.listOutbox(target, [-1, ...everything], { limit: 10 }), []);
  cluster.crashAll();
}

test("a database that is away stops its own runs and no others; what was said to them meanwhile is there when it is back, once", async () => {
  const cluster = await started(2);
  const [here, there] = [idIn(0, "here"), idIn(1, "there")];
  // Each has children in both databases.
  assert.deepEqual(new Set(Array.from({ length: 6 }, (_, n) => placeOf(`${here}.${n}`))), new Set([0, 1]));
  await start(cluster, "parent", here, { of: here, times: 6 });
  await start(cluster, "parent", there, { of: there, times: 6 });
  await cluster.advance(600);
  const before = epochs(cluster);
  cluster.away.add(1);
  const alone = idIn(0, "alone");
  await start(cluster, "leaf", alone, "alone");
  assert.equal(await output(cluster, alone), "alone");
  await cluster.advance(lease + 2_000);
  for (const node of cluster.nodes)
    assert.deepEqual(
      node.engine?.ownership.shards.filter((shard) => shard % 2 === 1),
      [],
    );
  const refused = cluster.nodes[0]?.operations.start({ workflow: "leaf", id: idIn(1, "refused"), input: "refused" });
  await assert.rejects(cluster.answered(refused as Promise<unknown>), { code: "STORE_UNAVAILABLE", message: /memory 2/ });
  const next = idIn(0, "next");
  await start(cluster, "leaf", next, "next");
  assert.equal(await output(cluster, next), "next");
  cluster.away.delete(1);
  for (const id of [here, there])
    assert.deepEqual(
      await output(cluster, id),
      Array.from({ length: 6 }, (_, n) => `${id} ${n}`),
    );
  assert.equal(new Set(ran).size, ran.length, "nothing was done twice");
  // What was under way under the epochs before is void.
  for (const [shard, epoch] of epochs(cluster)) assert.equal(epoch > (before.get(shard) ?? 0), shard % 2 === 1, `shard ${shard}`);
  await nothingIsLeft(cluster);
});

test("what a node cannot reach is owned by those that can, and shared again when it can", async () => {
  const cluster = await started(2);
  const [one, two] = cluster.nodes;
  const owned = (node: typeof one, place: number) => node?.engine?.ownership.shards.filter((shard) => shard % 2 === place).length;
  two?.cutFrom.add(1);
  await cluster.until("the other has all of it", () => owned(one, 1) === 16 && owned(two, 1) === 0, lease * 2);
  assert.deepEqual([owned(one, 0), owned(two, 0)], [8, 8]);
  two?.cutFrom.clear();
  await cluster.until("both have some of it", () => owned(one, 1) === 8 && owned(two, 1) === 8);
  await nothingIsLeft(cluster);
});

test("what a turn says to another database is found by the next owner when its node dies before it was brought there", async () => {
  const cluster = await started(1);
  const [first] = cluster.nodes;
  assert.ok(first);
  first.freezeAt = "receive";
  const id = idIn(0, "bereft");
  const began = cluster.ask(id, (operations) =>
    operations.start({ workflow: "parent", id, input: { of: id, times: 4 }, idempotencyKey: id }),
  );
  began.catch(() => {});
  await cluster.until("a message is on its way", () => first.frozen, 20_000);
  first.crash();
  cluster.join();
  await cluster.answered(began);
  assert.deepEqual(
    await output(cluster, id),
    Array.from({ length: 4 }, (_, n) => `${id} ${n}`),
  );
  await nothingIsLeft(cluster);
});

test("a child that was to begin in a database that is away, and is not wanted any more when that is back, begins and is ended", async () => {
  const cluster = await started(1);
  const [own, other] = [idIn(0, "impatient"), idIn(1, "endless")];
  cluster.away.add(1);
  await start(cluster, "impatient", own, other);
  await cluster.advance(lease * 2);
  cluster.away.delete(1);
  assert.equal(await output(cluster, own), "late");
  await cluster.advance(lease);
  const { status } = await ask(cluster, other, (operations) => operations.result(other));
  assert.equal(status, "Terminated");
  await nothingIsLeft(cluster);
});

test("publications reach runs of all databases once each, in their order, however long one was away", async () => {
  const cluster = await started(2);
  const ids = [idIn(0, "listens"), idIn(1, "listens")];
  for (const id of ids) await start(cluster, "listener", id, 4);
  await cluster.advance(1_000);
  const [node, another] = cluster.nodes;
  const publish = (from: typeof node, n: number) =>
    cluster.answered(from?.operations.publish("told", n, { key: "k", idempotencyKey: `p-${n}` }) as Promise<{ delivered: number }>);
  assert.equal((await publish(node, 1)).delivered, 2);
  // The one that does not decide on the tenant's publications.
  const home = (await cluster.opened()).databases?.homeOf("default");
  cluster.away.add(home === 0 ? 1 : 0);
  await publish(node, 2);
  await publish(another, 3);
  await cluster.advance(1_000);
  cluster.away.clear();
  await publish(node, 4);
  await publish(another, 4);
  for (const id of ids) assert.deepEqual(await output(cluster, id), [1, 2, 3, 4]);
  await nothingIsLeft(cluster);
});

test("a start with a key is one start, also without an id, from whichever node, and with an id its key is found again", async () => {
  const cluster = await started(2);
  const [one, two] = cluster.nodes.map(({ operations }) => operations);
  assert.ok(one && two);
  const request = { workflow: "leaf", input: "keyed" };
  const runs = new Set<string>();
  for (let n = 0; n < 8; n += 1)
    for (const operations of [one, two]) {
      const begun = await cluster.answered(operations.start({ ...request, idempotencyKey: `key-${n}` }));
      runs.add(`${n} ${begun.runId}`);
    }
  assert.equal(runs.size, 8);
  await cluster.answered(one.start({ ...request, id: idIn(0, "first"), idempotencyKey: "used" }));
  const misused = one.start({ ...request, id: idIn(1, "second"), idempotencyKey: "used" });
  await assert.rejects(cluster.answered(misused), { code: "IDEMPOTENCY_CONFLICT" });
  await cluster.advance(5_000);
  await nothingIsLeft(cluster);
});
