import assert from "node:assert/strict";
import { test } from "node:test";
import { beat, claim, commit, next, scenario, shard, start, timersOf } from "../../src/store/contract/scenario.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { contractStoreOptions, storeContract } from "../../src/store-contract.ts";

storeContract("the memory store", () => ({ provider: memoryStore() }));

test("a memory store that is opened again has its data, and nobody owns its shards", async () => {
  const provider = memoryStore();
  const before = await scenario(await provider.open(contractStoreOptions));
  const turn = await start(before, { timers: [{ effect: "1", due: 5 }] });
  const store = await provider.open(contractStoreOptions);
  assert.deepEqual(await commit(before, next(before, turn)), [], "the one who is taken for dead writes nothing");
  const { granted } = await claim({ ...before, store }, "heir");
  const after = { ...before, store, owner: "heir", fence: granted };
  assert.equal(granted[0]?.epoch, (before.fence[0]?.epoch ?? 0) + 1);
  assert.deepEqual(await timersOf(after, turn.run), [["1", 5]]);
  assert.deepEqual(await commit(after, next(after, turn)), [turn.run]);
  assert.deepEqual(await commit(before, next(before, turn, { tail: 4 })), []);
});

test("a memory store judges leases by the clock it was given", async () => {
  let now = 1_000;
  const store = await memoryStore().open({ ...contractStoreOptions, now: () => now });
  const group = { store, group: "g", size: 1 };
  await claim(group, "first", { lease: 500 });
  now = 1_400;
  assert.equal((await beat(group, "second")).nodes[0]?.remaining, 100);
  assert.deepEqual((await claim(group, "second")).held, [{ shard: 0, epoch: 1, owner: "first" }]);
  now = 1_500;
  assert.deepEqual((await claim(group, "second")).granted, [{ shard: 0, epoch: 2 }]);
});

test("a memory store lists timers, messages and busy runs of a hundred thousand instances without reading them all", async () => {
  const at = await scenario(await memoryStore().open(contractStoreOptions), 64);
  for (let batch = 0; batch < 100; batch += 1) {
    const turns = Array.from({ length: 1_000 }, (_, index) => ({
      ...next(at, { run: `run-${batch}-${index}`, tail: 0, count: 0, tenant: at.tenant, shard: shard(at, index % 64) } as never),
      create: { id: `id-${batch}-${index}`, workflow: "w", version: "1" },
      timers: [{ effect: "1", due: batch * 1_000 + index }],
    }));
    assert.equal((await commit(at, ...turns)).length, 1_000);
  }
  const began = performance.now();
  for (let round = 0; round < 1_000; round += 1) assert.equal((await at.store.listTimers(at.shards, 50_000, 5)).length, 5);
  const took = performance.now() - began;
  assert.ok(took < 5_000, `a thousand looks at the earliest of 100000 timers took ${took} ms`);
});
