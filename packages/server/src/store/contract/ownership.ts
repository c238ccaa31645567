import assert from "node:assert/strict";
import { beat, claim, commit, firstTurn, next, type Scenario, shard, start, tailOf, unique, wholeGroup } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const hour = 3_600_000;

export function ownership({ test, store }: Suite): void {
  test("a new group is granted whole to the first who claims it, with consecutive numbers", async () => {
    const at = await wholeGroup(store(), 5);
    const first = shard(at);
    assert.deepEqual(
      at.shards,
      [0, 1, 2, 3, 4].map((slot) => first + slot),
    );
    assert.ok(at.fence.every(({ epoch }) => epoch >= 1));
  });

  test("no shard number belongs to two groups, whatever their sizes", async () => {
    const groups = await Promise.all([wholeGroup(store(), 7), wholeGroup(store(), 1), wholeGroup(store(), 3)]);
    const numbers = groups.flatMap((each) => each.shards);
    assert.equal(new Set(numbers).size, 11);
  });

  test("a group cannot be claimed with another number of shards", async () => {
    const at = await wholeGroup(store(), 4);
    await assert.rejects(beat({ ...at, size: 8 }, at.owner, { take: "free" }), { code: "INVALID_OPTION" });
    assert.deepEqual((await claim(at, at.owner)).granted, at.fence, "the refused beat changed nothing");
  });

  test("of many who claim a group at once each shard is granted to exactly one", async () => {
    const group = unique("group-");
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, index) => claim({ store: store(), group, size: 16 }, `${group}/${index}`)),
    );
    const granted = claims.flatMap((each) => each.granted.map((one) => one.shard));
    const { granted: rest } = await claim({ store: store(), group, size: 16 }, `${group}/last`);
    granted.push(...rest.map((one) => one.shard));
    assert.equal(granted.length, 16);
    assert.equal(new Set(granted).size, 16);
    for (const each of claims) assert.equal(each.granted.length + each.held.length, 16);
  });

  test("a shard of a node that lives is held, and told with its owner", async () => {
    const at = await wholeGroup(store());
    const other = await claim(at, unique("owner-"));
    assert.deepEqual(other.granted, []);
    assert.deepEqual(
      other.held.map(({ shard: number, epoch, owner }) => [number, epoch, owner]),
      at.fence.map(({ shard: number, epoch }) => [number, epoch, at.owner]),
    );
  });

  test("what nodes say of themselves is told to all of their group, and to no other", async () => {
    const [at, elsewhere] = [await wholeGroup(store(), 3), await wholeGroup(store())];
    const first = unique("node-");
    const second = unique("node-");
    await beat(at, second, { url: "http://10.0.0.2:7420", release: "2", workflows: ["order@1", "order@2"], draining: true });
    const { nodes } = await beat(at, first);
    assert.deepEqual(
      nodes.map(({ remaining: _, ...node }) => node),
      [
        { node: first, release: "1", workflows: [], draining: false },
        { node: second, url: "http://10.0.0.2:7420", release: "2", workflows: ["order@1", "order@2"], draining: true },
        { node: at.owner, release: "1", workflows: [], draining: false },
      ],
    );
    for (const { remaining } of nodes) assert.ok(remaining > 0 && remaining <= hour, String(remaining));
    assert.deepEqual(
      (await beat(elsewhere, elsewhere.owner)).nodes.map(({ node }) => node),
      [elsewhere.owner],
    );
    const { nodes: later } = await beat(at, second);
    assert.deepEqual(later.find(({ node }) => node === second)?.workflows, [], "what it says last counts");
  });

  test("a node whose lease has ended is removed by the next one that looks, with all its ownership; higher epochs follow", async () => {
    const at = await wholeGroup(store());
    await beat(at, at.owner, { lease: 0 });
    const looker = unique("owner-");
    const { nodes, shards } = await beat(at, looker);
    assert.deepEqual(
      nodes.map(({ node }) => node),
      [looker],
    );
    assert.deepEqual(
      shards.map(({ owner }) => owner),
      at.shards.map(() => undefined),
    );
    assert.deepEqual(await commit(at, firstTurn(at)), [], "who was removed writes nothing");
    const { granted } = await claim(at, looker);
    assert.deepEqual(
      granted,
      at.fence.map(({ shard: number, epoch }) => ({ shard: number, epoch: epoch + 1 })),
    );
  });

  test("a node that was removed and comes back learns that it owns nothing", async () => {
    const at = await wholeGroup(store());
    await beat(at, at.owner, { lease: 0 });
    await beat(at, unique("owner-"));
    const { nodes, shards } = await beat(at, at.owner);
    assert.equal(nodes.length, 2);
    assert.ok(shards.every(({ owner }) => owner === undefined));
  });

  test("nodes known to be dead are removed before their leases end", async () => {
    const at = await wholeGroup(store());
    const other = await claim(at, unique("owner-"), { dead: [unique("someone-"), at.owner] });
    assert.equal(other.granted.length, at.shards.length);
  });

  test("a node that beats keeps what it owns, with the same epochs, whatever it would take", async () => {
    const at = await wholeGroup(store());
    for (const take of ["free", at.shards, []] as const) assert.deepEqual((await claim(at, at.owner, { take })).granted, at.fence);
  });

  test("a lease that has ended and that nobody noticed is renewed, with all that is owned", async () => {
    const at = await wholeGroup(store());
    await beat(at, at.owner, { lease: 0 });
    assert.deepEqual((await claim(at, at.owner)).granted, at.fence);
    assert.deepEqual((await claim(at, unique("owner-"))).granted, []);
  });

  test("a node takes the shards that it asks for, and no others", async () => {
    const at = await wholeGroup(store(), 4);
    await store().leave(at.group, at.owner);
    const [, second, third] = at.shards;
    assert.ok(second !== undefined && third !== undefined);
    const other = unique("owner-");
    const { granted } = await claim(at, other, { take: [second, third] });
    assert.deepEqual(
      granted.map((each) => each.shard),
      [second, third],
    );
    assert.deepEqual((await claim(at, unique("owner-"), { take: [third] })).granted, [], "another's is not taken");
  });

  test("shards that are given up are free at once, with what was missing for them; a stale hand-over changes nothing", async () => {
    const at = await wholeGroup(store());
    const [first, second] = at.fence;
    assert.ok(first && second);
    const taker = unique("owner-");
    await beat(at, at.owner, { give: [{ shard: first.shard, epoch: first.epoch - 1 }] });
    await beat(at, unique("owner-"), { give: [first] });
    assert.deepEqual((await claim(at, taker)).granted, []);
    const { shards } = await beat(at, at.owner, { give: [{ ...second, needs: "order@2" }, first] });
    assert.deepEqual(shards, [
      { shard: first.shard, epoch: first.epoch },
      { shard: second.shard, epoch: second.epoch, needs: "order@2" },
    ]);
    assert.deepEqual((await claim(at, taker, { take: [first.shard] })).granted, [{ shard: first.shard, epoch: first.epoch + 1 }]);
    assert.deepEqual(await commit(at, firstTurn(at), firstTurn(at, { shard: second.shard })), [], "who gave them up writes nothing");
  });

  test("a node that leaves is gone with all its ownership; leaving twice, or without having been there, is nothing", async () => {
    const at = await wholeGroup(store());
    for (const node of [at.owner, at.owner, unique("owner-")]) await store().leave(at.group, node);
    const { nodes, shards } = await beat(at, unique("owner-"));
    assert.equal(nodes.length, 1);
    assert.ok(shards.every(({ owner }) => owner === undefined));
  });

  test("H063 no turn is committed under a stale epoch, and the turns of other shards are not its hostages", async () => {
    const at = await wholeGroup(store());
    const [mine, lost] = [await start(at), await start(at, { shard: shard(at, 1) })];
    const taker = unique("owner-");
    await beat(at, at.owner, { give: at.fence.slice(1) });
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
    const at = await wholeGroup(store(), 3);
    const turns = await Promise.all([0, 1, 2].map((index) => start(at, { shard: shard(at, index) })));
    const [first, second] = at.fence;
    assert.ok(first && second);
    await beat(at, at.owner, { give: [second] });
    const fence = [{ shard: first.shard, epoch: first.epoch + 1 }, second];
    const { done } = await store().commit({ fence, turns: turns.map((turn) => next(at, turn)) });
    assert.deepEqual([...done], []);
  });

  /** All shards, from whoever has them. */
  async function takeOver(at: Scenario, owner: string) {
    for (;;) {
      const taken = await claim(at, owner, { dead: [at.owner], lease: 0 });
      if (taken.granted.length === at.shards.length) return taken;
    }
  }

  test("H056 a takeover in progress and a flush under way agree on who wrote", async () => {
    const at = await wholeGroup(store(), 4);
    const runs = await Promise.all(at.shards.map((_, index) => start(at, { shard: shard(at, index) })));
    let { fence } = at;
    let tail = 2;
    for (let round = 0; round < 20; round += 1) {
      const turns = runs.map((turn) => next(at, turn, { tail, nonce: `old-${round}` }));
      const [flush, taken] = await Promise.all([store().commit({ fence, turns }), takeOver(at, unique("owner-"))]);
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
