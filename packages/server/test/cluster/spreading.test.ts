import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { ShardRow } from "../../src/engine/ports/store.ts";
import { compareReleases, type SpreadNode, spread } from "../../src/engine/spreading.ts";

type Group = { readonly nodes: readonly SpreadNode[]; readonly shards: readonly ShardRow[] };

const versions = ["order@1", "order@2", "order@3"];

const group: fc.Arbitrary<Group> = fc
  .record({
    nodes: fc.array(
      fc.record({
        release: fc.constantFrom("1", "2", "10"),
        workflows: fc.subarray(versions),
        draining: fc.boolean(),
      }),
      { minLength: 1, maxLength: 9 },
    ),
    owners: fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 64 }),
    needs: fc.array(fc.option(fc.constantFrom(...versions), { nil: undefined, freq: 6 }), { minLength: 64, maxLength: 64 }),
  })
  .map(({ nodes, owners, needs }) => ({
    nodes: nodes.map((node, index) => ({ ...node, node: `n${index}` })),
    shards: owners.map((owner, shard) => ({
      shard,
      epoch: 1,
      ...(owner < nodes.length && { owner: `n${owner}` }),
      ...(needs[shard] !== undefined && { needs: needs[shard] }),
    })),
  }));

const withoutNeeds = group.map(({ nodes, shards }) => ({ nodes, shards: shards.map(({ needs: _, ...row }) => row) }));

/** One round: everybody takes what is for it, and gives up what it owns too many. Says how many shards changed hands. */
function round({ nodes, shards }: Group): { readonly after: Group; readonly moved: number } {
  const rows = shards.map((row) => ({ ...row }));
  let moved = 0;
  for (const { node } of nodes) {
    const plan = spread(nodes, shards, node);
    for (const shard of plan.take) {
      const row = rows[shard] as { owner?: string };
      assert.equal(row.owner, undefined, `shard ${shard} is taken by two, or was owned`);
      row.owner = node;
    }
    const own = rows.filter(({ shard }) => shards[shard]?.owner === node);
    const given = new Set([...plan.unfit, ...own.map(({ shard }) => shard).slice(0, plan.excess)]);
    for (const row of own) {
      if (!given.has(row.shard)) continue;
      delete (row as { owner?: string }).owner;
      moved += 1;
    }
  }
  return { after: { nodes, shards: rows }, moved };
}

/** Rounds until nothing changes. */
function settled(from: Group): { readonly end: Group; readonly moved: number } {
  let current = from;
  let moved = 0;
  for (let rounds = 0; rounds < 20; rounds += 1) {
    const { after, moved: now } = round(current);
    moved += now;
    if (JSON.stringify(after.shards) === JSON.stringify(current.shards)) return { end: current, moved };
    current = after;
  }
  return assert.fail(`it does not settle: ${JSON.stringify(from)}`);
}

const countOf = ({ shards }: Group, node: string) => shards.filter(({ owner }) => owner === node).length;

test("shares are even, nothing is left over, those who drain end with nothing, and nothing moves after that", () => {
  fc.assert(
    fc.property(withoutNeeds, (from) => {
      const { end } = settled(from);
      const staying = end.nodes.filter(({ draining }) => !draining);
      if (staying.length === 0) return;
      const counts = staying.map(({ node }) => countOf(end, node));
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join(" "));
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        end.shards.length,
      );
    }),
    { numRuns: 500 },
  );
});

test("no more shards change hands than even shares take", () => {
  fc.assert(
    fc.property(withoutNeeds, (from) => {
      const staying = from.nodes.filter(({ draining }) => !draining);
      if (staying.length === 0) return;
      const { moved } = settled(from);
      const [even, rest] = [Math.floor(from.shards.length / staying.length), from.shards.length % staying.length];
      const counts = staying.map(({ node }) => countOf(from, node)).sort((a, b) => b - a);
      const over = counts.reduce((sum, count, place) => sum + Math.max(0, count - even - (place < rest ? 1 : 0)), 0);
      const drained = from.nodes.filter(({ draining }) => draining).reduce((sum, { node }) => sum + countOf(from, node), 0);
      assert.equal(moved, over + drained);
    }),
    { numRuns: 500 },
  );
});

test("a node that is alone takes everything, and keeps it when it drains", () => {
  const node = { node: "n", release: "1", workflows: [], draining: false };
  const free = Array.from({ length: 7 }, (_, shard) => ({ shard, epoch: 0 }));
  assert.deepEqual(spread([node], free, "n"), { share: 7, take: [0, 1, 2, 3, 4, 5, 6], excess: 0, unfit: [] });
  const own = free.map((row) => ({ ...row, owner: "n" }));
  assert.deepEqual(spread([{ ...node, draining: true }], own, "n"), { share: 0, take: [], excess: 0, unfit: [] });
});

test("what nobody owns goes to later releases first", () => {
  const nodes = ["1.9", "1.10", "1.2"].map((release, index) => ({ node: `n${index}`, release, workflows: [], draining: false }));
  const shards = Array.from({ length: 9 }, (_, shard) => ({ shard, epoch: 1, ...(shard > 3 && { owner: `n${shard % 2}` }) }));
  assert.deepEqual(
    nodes.map(({ node }) => spread(nodes, shards, node).take.length),
    [0, 1, 3],
  );
  const some = shards.map((row) => (row.shard > 1 ? { ...row, owner: row.shard % 2 === 0 ? "n0" : "gone" } : row));
  assert.deepEqual(
    nodes.map(({ node }) => spread(nodes, some, node).take),
    [[], [0, 1], []],
  );
});

test("a shard that needs a workflow ends with a node that has it, and stays there", () => {
  fc.assert(
    fc.property(group, (from) => {
      let current = from;
      for (let rounds = 0; rounds < 30; rounds += 1) current = round(current).after;
      const staying = current.nodes.filter(({ draining }) => !draining);
      const unfit = current.shards.filter(({ needs, owner }) => {
        if (needs === undefined || owner === undefined) return false;
        const able = staying.filter(({ workflows }) => workflows.includes(needs));
        return able.length > 0 && !able.some(({ node }) => node === owner);
      });
      assert.deepEqual(unfit, []);
    }),
    { numRuns: 200 },
  );
});

test("releases are ordered by their numbers", () => {
  const ordered = ["", "1", "1.2", "1.9", "1.10", "2026-11-30", "2026-12-01", "v1", "v2", "v10", "v10-rc"];
  for (const [index, release] of ordered.entries())
    for (const [place, other] of ordered.entries())
      assert.equal(Math.sign(compareReleases(release, other)), Math.sign(index - place), `${release} ${other}`);
  assert.equal(compareReleases("1.02", "1.2"), 0);
});
