import assert from "node:assert/strict";
import fc from "fast-check";
import type { PermitAsk, TokenAsk } from "../../engine/ports/limits.ts";
import { unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const hour = 3_600_000;

/** A limit that no other case asks for. */
const permit = (details: Partial<PermitAsk> = {}): PermitAsk => ({
  tenant: unique("tenant-"),
  name: unique("limit-"),
  capacity: 3,
  inUse: 0,
  wanted: 1,
  oldest: 0,
  evicts: false,
  ...details,
});

const token = (details: Partial<TokenAsk> = {}): TokenAsk => ({
  tenant: unique("tenant-"),
  name: unique("rate-"),
  limit: 5,
  per: hour,
  wanted: 1,
  ...details,
});

export function limits({ test, store, runs }: Suite): void {
  const ask = async (owner: string, request: PermitAsk, lease = hour) => {
    const [grant] = await store().exchangePermits(owner, lease, [request]);
    assert.ok(grant);
    return grant;
  };

  test("a node is granted what it wants, up to the capacity, and gives back what it no longer uses", async () => {
    const limit = permit();
    const [a, b] = [unique("a-"), unique("b-")];
    assert.deepEqual(await ask(a, { ...limit, wanted: 2 }), { permits: 2, evict: 0, shared: false });
    assert.deepEqual(await ask(b, { ...limit, wanted: 5 }), { permits: 1, evict: 0, shared: true });
    assert.equal((await ask(a, { ...limit, inUse: 1, wanted: 0 })).permits, 1);
    assert.equal((await ask(b, { ...limit, inUse: 1, wanted: 5 })).permits, 2);
    assert.equal((await ask(a, { ...limit, inUse: 0, wanted: 0 })).permits, 0);
    assert.deepEqual(await ask(b, { ...limit, inUse: 2, wanted: 5 }), { permits: 3, evict: 0, shared: false });
  });

  test("limits of another name or another tenant are others", async () => {
    const limit = permit({ capacity: 1 });
    const [first, second, third] = await store().exchangePermits(unique("a-"), hour, [
      limit,
      { ...limit, name: unique("limit-") },
      { ...limit, tenant: unique("tenant-") },
    ]);
    assert.deepEqual([first?.permits, second?.permits, third?.permits], [1, 1, 1]);
    assert.equal((await ask(unique("b-"), limit)).permits, 0);
  });

  test("H118 what a node held is free when its lease has ended, and not before", async () => {
    const limit = permit({ capacity: 1 });
    const [dead, next] = [unique("dead-"), unique("next-")];
    await ask(dead, limit);
    assert.equal((await ask(next, limit)).permits, 0);
    await ask(dead, { ...limit, inUse: 1, wanted: 0 }, 0);
    assert.equal((await ask(next, limit)).permits, 1);
    assert.equal((await ask(dead, { ...limit, inUse: 0 })).permits, 0, "it wakes, and others have it");
  });

  test("what dead nodes hold can be given up at once", async () => {
    const limit = permit({ capacity: 1 });
    const dead = unique("dead-");
    await ask(dead, limit);
    assert.ok((await store().listPermitOwners()).includes(dead));
    await store().releasePermits([dead]);
    assert.ok(!(await store().listPermitOwners()).includes(dead));
    assert.equal((await ask(unique("next-"), limit)).permits, 1);
  });

  test("where several nodes want permits their shares become even", async () => {
    const limit = permit({ capacity: 4 });
    const [a, b] = [unique("a-"), unique("b-")];
    assert.equal((await ask(a, { ...limit, wanted: 100 })).permits, 4);
    assert.equal((await ask(b, { ...limit, wanted: 100 })).permits, 0);
    const told = await ask(a, { ...limit, inUse: 4, wanted: 100 });
    assert.deepEqual(told, { permits: 2, evict: 0, shared: true }, "it begins nothing in the place of two of them");
    assert.equal((await ask(a, { ...limit, inUse: 2, wanted: 100 })).permits, 2);
    assert.equal((await ask(b, { ...limit, wanted: 100 })).permits, 2);
  });

  test("a single permit goes from node to node", async () => {
    const limit = permit({ capacity: 1, wanted: 10 });
    const [a, b] = [unique("a-"), unique("b-")];
    assert.equal((await ask(a, limit)).permits, 1);
    const served: string[] = [];
    let [holder, other] = [a, b];
    for (let round = 0; round < 6; round += 1) {
      assert.equal((await ask(other, limit)).permits, 0);
      assert.equal((await ask(holder, { ...limit, inUse: 1 })).permits, 0, "it is to begin nothing after this one");
      await ask(holder, limit);
      assert.equal((await ask(other, limit)).permits, 1);
      [holder, other] = [other, holder];
      served.push(holder);
    }
    assert.deepEqual(served, [b, a, b, a, b, a]);
  });

  test("who takes the place of what is in progress has the longest use ended, on whatever node it is", async () => {
    const limit = permit({ capacity: 2 });
    const [a, b, c] = [unique("a-"), unique("b-"), unique("c-")];
    await ask(a, { ...limit, wanted: 1 });
    await ask(b, { ...limit, wanted: 1 });
    await ask(a, { ...limit, inUse: 1, wanted: 0, oldest: 2_000 });
    await ask(b, { ...limit, inUse: 1, wanted: 0, oldest: 1_000 });
    const newest = { ...limit, wanted: 1, evicts: true };
    assert.deepEqual(await ask(c, newest), { permits: 0, evict: 0, shared: true });
    assert.equal((await ask(c, newest)).permits, 0, "asked again, it has no second one ended");
    assert.equal((await ask(a, { ...limit, inUse: 1, wanted: 0, oldest: 2_000 })).evict, 0);
    assert.equal((await ask(b, { ...limit, inUse: 1, wanted: 0, oldest: 1_000 })).evict, 1);
    assert.equal((await ask(c, newest)).permits, 0, "it has been told, and is not over");
    await ask(b, { ...limit, inUse: 0, wanted: 0 });
    assert.equal((await ask(c, newest)).permits, 1);
    assert.equal((await ask(a, { ...limit, inUse: 1, wanted: 0, oldest: 2_000 })).evict, 0);
  });

  test("never more permits are held than there are, whatever nodes ask and however they die", async () => {
    const step = fc.record({ node: fc.nat(3), ended: fc.nat(3), wanted: fc.nat(4), dies: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 25 }), async (capacity, steps) => {
        const limit = permit({ capacity });
        const names = [0, 1, 2, 3].map(() => unique("node-"));
        const used = names.map(() => 0);
        for (const { node, ended, wanted, dies } of steps) {
          const before = used[node] as number;
          const inUse = Math.max(0, before - ended);
          const { permits } = await ask(names[node] as string, { ...limit, inUse, wanted });
          used[node] = Math.max(inUse, Math.min(permits, inUse + wanted));
          assert.ok(used.reduce((a, b) => a + b) <= capacity, `${used} of ${capacity}`);
          if (!dies) continue;
          await store().releasePermits([names[node] as string]);
          used[node] = 0;
        }
      }),
      { numRuns: runs },
    );
  });

  test("tokens are granted up to the limit, and what is not granted says when to ask again", async () => {
    const rate = token();
    const take = async (request: TokenAsk) => (await store().takeTokens([request]))[0];
    assert.deepEqual(await take({ ...rate, wanted: 3 }), { tokens: 3, wait: 0 });
    const some = await take({ ...rate, wanted: 3 });
    assert.equal(some?.tokens, 2);
    assert.ok((some?.wait ?? 0) > 0.9 * hour && (some?.wait ?? 0) <= 1.03 * hour, `${some?.wait}`);
    assert.equal((await take(rate))?.tokens, 0);
    assert.equal((await take({ ...rate, name: unique("rate-") }))?.tokens, 1);
    assert.equal((await take({ ...rate, tenant: unique("tenant-") }))?.tokens, 1);
  });

  test("tokens come back when their time is over", async () => {
    const rate = token({ limit: 1, per: 50 });
    const take = async () => (await store().takeTokens([rate]))[0];
    assert.equal((await take())?.tokens, 1);
    for (let tries = 0; ; tries += 1) {
      const grant = await take();
      if (grant?.tokens === 1) break;
      assert.ok(tries < 50, "it does not come back");
      await new Promise((resolve) => setTimeout(resolve, grant?.wait ?? 0));
    }
  });

  test("many who ask at once are granted no more than there is", async () => {
    const rate = token({ limit: 7 });
    const limit = permit({ capacity: 7 });
    const grants = await Promise.all(Array.from({ length: 20 }, async () => (await store().takeTokens([rate]))[0]?.tokens ?? 0));
    assert.equal(
      grants.reduce((a, b) => a + b),
      7,
    );
    const permits = await Promise.all(Array.from({ length: 20 }, async () => (await ask(unique("node-"), limit)).permits));
    assert.ok(permits.reduce((a, b) => a + b) <= 7);
  });

  test("what nobody asks for any more is removed, and what is held stays", async () => {
    const [held, gone] = [permit({ capacity: 1 }), permit({ capacity: 1 })];
    const [holder, dead] = [unique("holder-"), unique("dead-")];
    await ask(holder, held);
    await ask(dead, gone, 0);
    await store().expireLimits();
    const owners = await store().listPermitOwners();
    assert.ok(owners.includes(holder) && !owners.includes(dead));
  });

  test("a name that cannot be stored is refused", async () => {
    await assert.rejects(store().exchangePermits("node", hour, [permit({ name: "a\u001fb" })]), { code: "PAYLOAD_UNSERIALIZABLE" });
    await assert.rejects(store().takeTokens([token({ name: "a\u0000b" })]), { code: "PAYLOAD_UNSERIALIZABLE" });
  });
}
