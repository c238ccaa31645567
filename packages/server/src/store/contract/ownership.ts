import assert from "node:assert/strict";
import { claim, commit, firstTurn, next, type Scenario, scenario, shard, start, tailOf, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const hour = 3_600_000;

export function ownership({ test, store }: Suite): void {
  test("a new group is granted whole to the first who claims it, with consecutive numbers", async () => {
    const at = await scenario(store(), 5);
    const first = shard(at);
    assert.deepEqual(
      at.shards,
      [0, 1, 2, 3, 4].map((slot) => first + slot),
    );
    assert.ok(at.fence.every(({ epoch }) => epoch >= 1));
  });

  test("no shard number belongs to two groups, whatever their sizes", async () => {
    const groups = await Promise.all([scenario(store(), 7), scenario(store(), 1), scenario(store(), 3)]);
    const numbers = groups.flatMap((each) => each.shards);
    assert.equal(new Set(numbers).size, 11);
  });

  test("a group cannot be claimed with another number of shards", async () => {
    const at = await scenario(store(), 4);
    await assert.rejects(store().claimShards({ group: at.group, shards: 8, owner: at.owner, lease: hour }), { code: "INVALID_OPTION" });
    assert.deepEqual((await store().renewShards(at.owner, at.fence, hour)).length, 4, "the refused claim changed nothing");
  });

  test("of many who claim a group at once each shard is granted to exactly one", async () => {
    const group = unique("group-");
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store().claimShards({ group, shards: 16, owner: `${group}/${index}`, lease: hour })),
    );
    const granted = claims.flatMap((each) => each.granted.map((one) => one.shard));
    assert.equal(granted.length, 16);
    assert.equal(new Set(granted).size, 16);
    for (const each of claims) assert.equal(each.granted.length + each.held.length, 16);
  });

  test("a shard under another's lease is held, with its owner and what remains of the lease", async () => {
    const at = await scenario(store());
    const other = await claim(at, unique("owner-"));
    assert.deepEqual(other.granted, []);
    assert.deepEqual(
      other.held.map(({ shard: number, owner }) => [number, owner]),
      at.shards.map((number) => [number, at.owner]),
    );
    for (const { remaining } of other.held) assert.ok(remaining > 0 && remaining <= hour, String(remaining));
  });

  test("an expired lease is taken over with a higher epoch", async () => {
    const at = await scenario(store());
    await store().renewShards(at.owner, at.fence, 0);
    const other = await claim(at, unique("owner-"));
    assert.deepEqual(other.held, []);
    for (const [index, { epoch }] of other.granted.entries()) assert.ok(epoch > (at.fence[index]?.epoch ?? Number.POSITIVE_INFINITY));
  });

  test("shards of an owner known to be dead are taken before their lease runs out", async () => {
    const at = await scenario(store());
    const other = await claim(at, unique("owner-"), { dead: [unique("someone-"), at.owner] });
    assert.equal(other.granted.length, at.shards.length);
  });

  test("claiming one's own shards again raises their epochs", async () => {
    const at = await scenario(store());
    const again = await claim(at, at.owner);
    assert.deepEqual(
      again.granted,
      at.fence.map(({ shard: number, epoch }) => ({ shard: number, epoch: epoch + 1 })),
    );
  });

  test("renewing prolongs the lease of shards owned with the given epoch, and names only those", async () => {
    const at = await scenario(store(), 3);
    await store().renewShards(at.owner, at.fence, 0);
    const [first, second, third] = at.fence;
    assert.ok(first && second && third);
    const stale = { shard: second.shard, epoch: second.epoch - 1 };
    assert.deepEqual(await store().renewShards(at.owner, [first, stale, third], hour), [first, third]);
    assert.deepEqual(await store().renewShards(unique("owner-"), at.fence, hour), []);
    assert.deepEqual(await store().renewShards(at.owner, [], hour), []);
    const other = await claim(at, unique("owner-"));
    assert.deepEqual(
      other.granted.map((each) => each.shard),
      [second.shard],
    );
  });

  test("an expired lease that nobody took can be renewed", async () => {
    const at = await scenario(store());
    await store().renewShards(at.owner, at.fence, 0);
    assert.deepEqual(await store().renewShards(at.owner, at.fence, hour), at.fence);
  });

  test("released shards are free at once; a stale release changes nothing", async () => {
    const at = await scenario(store());
    const [first] = at.fence;
    assert.ok(first);
    await store().releaseShards(at.owner, [{ shard: first.shard, epoch: first.epoch - 1 }]);
    await store().releaseShards(unique("owner-"), [first]);
    assert.deepEqual((await claim(at, unique("owner-"))).granted, []);
    await store().releaseShards(at.owner, [first]);
    assert.deepEqual((await claim(at, unique("owner-"))).granted, [{ shard: first.shard, epoch: first.epoch + 1 }]);
  });

  test("H063 no turn is committed under a stale epoch, and the turns of other shards are not its hostages", async () => {
    const at = await scenario(store());
    const [mine, lost] = [await start(at), await start(at, { shard: shard(at, 1) })];
    const taker = unique("owner-");
    await store().renewShards(at.owner, at.fence.slice(1), 0);
    const taken = await claim(at, taker);
    assert.equal(taken.granted.length, 1);
    const fresh = firstTurn(at, { shard: shard(at, 1) });
    assert.deepEqual(await commit(at, next(at, lost), next(at, mine), fresh), [mine.run]);
    assert.equal(await tailOf(at, lost.run), 2);
    assert.equal(await tailOf(at, fresh.run), undefined);
    assert.equal((await store().readHistory({ tenant: at.tenant, run: lost.run }, 1, 10)).length, 1);
    const owned: Scenario = { ...at, owner: taker, fence: taken.granted };
    assert.deepEqual(await commit(owned, next(at, lost)), [lost.run]);
  });

  test("a turn is refused under an epoch that is not there yet, on a released shard, and on a shard outside the fence", async () => {
    const at = await scenario(store(), 3);
    const turns = await Promise.all([0, 1, 2].map((index) => start(at, { shard: shard(at, index) })));
    const [first, second] = at.fence;
    assert.ok(first && second);
    await store().releaseShards(at.owner, [second]);
    const fence = [{ shard: first.shard, epoch: first.epoch + 1 }, second];
    const { done } = await store().commit({ fence, turns: turns.map((turn) => next(at, turn)) });
    assert.deepEqual([...done], []);
  });

  test("H056 a takeover in progress and a flush under way agree on who wrote", async () => {
    const at = await scenario(store(), 4);
    const runs = await Promise.all(at.shards.map((_, index) => start(at, { shard: shard(at, index) })));
    let { fence } = at;
    let tail = 2;
    for (let round = 0; round < 20; round += 1) {
      const turns = runs.map((turn) => next(at, turn, { tail, nonce: `old-${round}` }));
      const [flush, taken] = await Promise.all([
        store().commit({ fence, turns }),
        claim(at, unique("owner-"), { dead: [at.owner], lease: 0 }),
      ]);
      assert.equal(taken.granted.length, 4);
      for (const { run } of runs) {
        const row = await store().getInstance({ tenant: at.tenant, run });
        assert.equal(row?.tail, flush.done.has(run) ? tail + 2 : tail);
      }
      // The old owner's turns are refused from here on; the new owner brings every run to the same tail.
      const missed = turns.filter(({ run }) => !flush.done.has(run));
      if (missed.length > 0) assert.deepEqual([...(await store().commit({ fence, turns: missed })).done], []);
      const caughtUp = await store().commit({ fence: taken.granted, turns: missed });
      assert.equal(caughtUp.done.size, missed.length);
      ({ granted: fence } = taken);
      tail += 2;
    }
  });
}
