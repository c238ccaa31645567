import assert from "node:assert/strict";
import { child, commit, firstTurn, inboxOf, instance, message, next, scenario, shard, start, tailOf, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function children({ test, store }: Suite): void {
  test("a child is created with tail 0 and its start in its inbox, and its owner's first turn needs no creation", async () => {
    const at = await scenario(store());
    const parent = await start(at);
    const wanted = child(at, parent);
    assert.deepEqual(await commit(at, next(at, parent, { at: 777, children: [wanted] })), [parent.run]);
    const row = await store().getInstance({ tenant: at.tenant, run: wanted.run });
    assert.deepEqual([row?.tail, row?.status, row?.busy, row?.createdAt, row?.shard], [0, "open", false, 777, wanted.shard]);
    assert.deepEqual(row?.parent, wanted.instance.parent);
    assert.deepEqual(await inboxOf(at, wanted.run), [wanted.start.message]);
    assert.deepEqual(await inboxOf(at, parent.run), []);
    assert.deepEqual(await store().readHistory({ tenant: at.tenant, run: wanted.run }, 1, 10), []);
    const first = { ...firstTurn(at, { run: wanted.run, shard: wanted.shard, consumed: [wanted.start.message] }) };
    const { create: _, ...turn } = first;
    assert.deepEqual(await commit(at, turn), [wanted.run]);
    assert.equal(await tailOf(at, wanted.run), 2);
    assert.deepEqual(await inboxOf(at, wanted.run), []);
  });

  test("a child whose id is taken is rejected to its parent, and its siblings are created", async () => {
    const at = await scenario(store());
    const parent = await start(at);
    const other = await start(at, { create: instance({ id: "taken" }) });
    const [rejected, created] = [child(at, parent, { id: "taken" }), child(at, parent)];
    const outcome = await store().commit({ fence: at.fence, turns: [next(at, parent, { children: [rejected, created] })] });
    assert.deepEqual([...outcome.done], [parent.run]);
    assert.deepEqual([...outcome.rejectedChildren], [rejected.run]);
    assert.equal(await store().getInstance({ tenant: at.tenant, run: rejected.run }), undefined);
    assert.deepEqual(await inboxOf(at, parent.run), [rejected.rejection.message]);
    assert.deepEqual(await inboxOf(at, rejected.run), []);
    assert.deepEqual(await inboxOf(at, created.run), [created.start.message]);
    assert.equal((await store().findInstance(at.tenant, "taken"))?.run, other.run);
  });

  test("a child's id is free once its last run has closed", async () => {
    const at = await scenario(store());
    const parent = await start(at);
    await start(at, { create: instance({ id: "again" }), status: "Completed" });
    const wanted = child(at, parent, { id: "again" });
    const outcome = await store().commit({ fence: at.fence, turns: [next(at, parent, { children: [wanted] })] });
    assert.equal(outcome.rejectedChildren.size, 0);
    assert.equal((await store().findInstance(at.tenant, "again"))?.run, wanted.run);
  });

  test("two children of one flush with one id: the first is created, the second rejected", async () => {
    const at = await scenario(store());
    const [left, right] = await Promise.all([start(at), start(at)]);
    const [first, second] = [child(at, left, { id: "shared" }), child(at, right, { id: "shared" })];
    const outcome = await store().commit({
      fence: at.fence,
      turns: [next(at, left, { children: [first] }), next(at, right, { children: [second] })],
    });
    assert.deepEqual([...outcome.rejectedChildren], [second.run]);
    assert.deepEqual(await inboxOf(at, right.run), [second.rejection.message]);
  });

  test("a child whose start key is taken is rejected", async () => {
    const at = await scenario(store());
    const startKey = { key: "once", digest: "d" };
    const holder = await start(at, { create: instance({ startKey }), status: "Completed" });
    const parent = await start(at);
    const [wanted, other] = [child(at, parent, { startKey }), child(at, parent, { startKey: { key: "more", digest: "d" } })];
    const outcome = await store().commit({ fence: at.fence, turns: [next(at, parent, { children: [wanted, other] })] });
    assert.deepEqual([...outcome.rejectedChildren], [wanted.run]);
    assert.equal((await store().findStartKey(at.tenant, "order", "once"))?.run, holder.run);
    assert.equal((await store().findStartKey(at.tenant, "order", "more"))?.run, other.run);
  });

  test("a closing turn can hand its id on to a child: continue as new", async () => {
    const at = await scenario(store());
    const first = await start(at, { create: instance({ id: "loop" }) });
    const successor = child(at, first, { id: "loop" });
    const outcome = await store().commit({
      fence: at.fence,
      turns: [next(at, first, { status: "ContinuedAsNew", children: [successor] })],
    });
    assert.equal(outcome.rejectedChildren.size, 0);
    assert.equal((await store().findInstance(at.tenant, "loop"))?.run, successor.run);
  });

  test("a closing turn's rejected child leaves no message to the closed parent", async () => {
    const at = await scenario(store());
    await start(at, { create: instance({ id: "elsewhere" }) });
    const parent = await start(at);
    const wanted = child(at, parent, { id: "elsewhere" });
    const outcome = await store().commit({ fence: at.fence, turns: [next(at, parent, { status: "Completed", children: [wanted] })] });
    assert.deepEqual([...outcome.rejectedChildren], [wanted.run]);
    assert.deepEqual(await inboxOf(at, parent.run), []);
  });

  test("a refused turn creates no child", async () => {
    const at = await scenario(store());
    const parent = await start(at);
    const wanted = child(at, parent, { startKey: { key: "never", digest: "d" } });
    const refused = next(at, parent, { tail: 7, children: [wanted], sends: [message(at, parent.run)] });
    const bystander = firstTurn(at);
    const outcome = await store().commit({ fence: at.fence, turns: [refused, bystander] });
    assert.deepEqual([[...outcome.done], outcome.rejectedChildren.size], [[bystander.run], 0]);
    assert.equal(await store().getInstance({ tenant: at.tenant, run: wanted.run }), undefined);
    assert.equal(await store().findStartKey(at.tenant, "order", "never"), undefined);
    assert.deepEqual([await inboxOf(at, wanted.run), await inboxOf(at, parent.run)], [[], []]);
  });

  test("a parent's first turn can create children and send to them", async () => {
    const at = await scenario(store());
    const turn = firstTurn(at);
    const wanted = child(at, turn);
    const letter = message(at, wanted.run, { shard: wanted.shard });
    assert.deepEqual(await commit(at, { ...turn, children: [wanted], sends: [letter] }), [turn.run]);
    assert.deepEqual(await inboxOf(at, wanted.run), [wanted.start.message, letter.message]);
  });

  test("crossing children of two flushes under way at once end in one consistent state", async () => {
    const at = await scenario(store());
    for (let round = 0; round < 10; round += 1) {
      const parents = await Promise.all([start(at), start(at, { shard: shard(at, 1) })]);
      const ids = [unique("id-"), unique("id-"), unique("id-")];
      const flushes = parents.map((parent, index) => {
        const order = index === 0 ? ids : [...ids].reverse();
        return next(at, parent, { children: order.map((id) => child(at, parent, { id })) });
      });
      const outcomes = await Promise.all(flushes.map((turn) => store().commit({ fence: at.fence, turns: [turn] })));
      const rejected = outcomes.reduce((sum, outcome) => sum + outcome.rejectedChildren.size, 0);
      assert.deepEqual([outcomes.reduce((sum, { done }) => sum + done.size, 0), rejected], [2, 3]);
      const messages = await Promise.all(parents.map((parent) => inboxOf(at, parent.run)));
      assert.equal(messages.flat().length, 3);
    }
  });
}
