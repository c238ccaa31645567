import assert from "node:assert/strict";
import type { InstanceKey, InstanceRow, ListFilter, StoredStatus } from "../../engine/ports/store.ts";
import { child, commit, firstTurn, instance, message, next, type Scenario, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function reads({ test, store }: Suite): void {
  test("what is not there is not found", async () => {
    const at = await scenario(store());
    const key = { tenant: at.tenant, run: unique("run-") };
    assert.equal(await store().getInstance(key), undefined);
    assert.equal(await store().findInstance(at.tenant, unique("id-")), undefined);
    assert.equal(await store().readLastTurn(key), undefined);
    assert.deepEqual(await store().readHistory(key, 1, 10), []);
    assert.deepEqual(await store().loadInstances([key]), []);
    assert.deepEqual(await store().loadInstances([]), []);
    assert.deepEqual(await store().listInstances(at.tenant, {}, { limit: 10 }), []);
    assert.deepEqual(await store().listRunnable(at.shards, "busy", { limit: 10 }), []);
  });

  test("an id finds its open run, else the newest of its closed ones", async () => {
    const at = await scenario(store());
    const turns = [];
    for (const status of ["Completed", "Failed", "open"] as const) {
      turns.push(await start(at, { create: instance({ id: "reused" }), status }));
      assert.equal((await store().findInstance(at.tenant, "reused"))?.run, turns.at(-1)?.run);
    }
    const [, second, third] = turns;
    assert.ok(second && third);
    await commit(at, next(at, third, { status: "Completed" }));
    assert.equal((await store().findInstance(at.tenant, "reused"))?.run, third.run);
    await start(at, { create: instance({ id: "other" }) });
    assert.equal((await store().findInstance(at.tenant, "reused"))?.run, third.run);
  });

  test("many runs are loaded at once, in the order of the keys, with rows and whole histories", async () => {
    const at = await scenario(store());
    const turns = await Promise.all(
      Array.from({ length: 5 }, (_, index) => start(at, { shard: shard(at, index % 2), attributes: { index } })),
    );
    const last: typeof turns = [];
    for (const [index, first] of turns.entries()) {
      let turn = first;
      for (let step = 0; step < index; step += 1) {
        turn = next(at, turn, { count: step + 1, status: step === 3 ? "Completed" : "open" });
        await commit(at, turn);
      }
      last.push(turn);
    }
    const parent = last[0];
    assert.ok(parent);
    const fresh = child(at, parent);
    await commit(at, next(at, parent, { children: [fresh] }));
    const keys: InstanceKey[] = [...turns, { tenant: at.tenant, run: unique("run-") }, { tenant: at.tenant, run: fresh.run }].reverse();
    const loaded = await store().loadInstances(keys);
    assert.deepEqual(
      loaded.map(({ row }) => row.run),
      [fresh.run, ...turns.map(({ run }) => run).reverse()],
    );
    for (const { row, turns: history } of loaded) {
      assert.deepEqual(row, await store().getInstance(row));
      assert.deepEqual(history, await store().readHistory(row, 1, 100));
      assert.equal(
        history.reduce((sum, { count }) => sum + count, 0),
        row.tail,
      );
    }
  });

  test("history is read from the turn that holds an event on, and at most so many turns", async () => {
    const at = await scenario(store());
    const first = await start(at, { count: 1 });
    let turn = first;
    for (const count of [4, 2, 1]) {
      turn = next(at, turn, { count });
      await commit(at, turn);
    }
    const seqs = async (fromSeq: number, limit: number) => (await store().readHistory(first, fromSeq, limit)).map(({ seq }) => seq);
    assert.deepEqual(await seqs(0, 10), [1, 2, 6, 8]);
    assert.deepEqual(await seqs(1, 10), [1, 2, 6, 8]);
    assert.deepEqual(await seqs(2, 10), [2, 6, 8]);
    assert.deepEqual(await seqs(5, 10), [2, 6, 8]);
    assert.deepEqual(await seqs(6, 1), [6]);
    assert.deepEqual(await seqs(8, 10), [8]);
    assert.deepEqual(await seqs(9, 10), []);
    assert.deepEqual(await seqs(1, 2), [1, 2]);
    assert.equal((await store().readLastTurn(first))?.seq, 8);
  });

  test("H096 history that was written at one instant pages through in order, each turn once", async () => {
    const at = await scenario(store());
    const first = await start(at, { at: 5, count: 1 });
    for (let tail = 1; tail < 120; tail += 1) await commit(at, next(at, first, { tail, count: 1, at: 5 }));
    for (const limit of [1, 7, 500]) {
      const seen: number[] = [];
      for (;;) {
        const page = await store().readHistory(first, seen.length + 1, limit);
        if (page.length === 0) break;
        seen.push(...page.map(({ seq }) => seq));
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 120 }, (_, index) => index + 1),
      );
    }
  });

  test("the runs of one id are listed newest first, closed ones and the open one, and no other's", async () => {
    const at = await scenario(store());
    const id = unique("id-");
    const runs: string[] = [];
    for (let round = 0; round < 4; round++) {
      const turn = await start(at, { create: instance({ id }) });
      runs.unshift(turn.run);
      await start(at, { create: instance({ id: unique("other-") }) });
      if (round < 3) await commit(at, next(at, turn, { status: "Completed" }));
    }
    const listed = async (page: { after?: string; limit: number }) =>
      (await store().listInstances(at.tenant, { id }, page)).map(({ run }) => run);
    const sorted = [...runs].sort().reverse();
    assert.deepEqual(await listed({ limit: 10 }), sorted);
    assert.deepEqual(await listed({ limit: 2 }), sorted.slice(0, 2));
    assert.deepEqual(await listed({ limit: 10, after: sorted[1] as string }), sorted.slice(2));
    assert.deepEqual(
      await store()
        .listInstances(at.tenant, { id, statuses: ["open"] }, { limit: 10 })
        .then((rows) => rows.length),
      1,
    );
    assert.deepEqual(await store().listInstances(unique("tenant-"), { id }, { limit: 10 }), []);
  });

  test("instances are listed newest first and filtered by workflow, status, time and attributes together", async () => {
    const at = await scenario(store());
    const statuses: readonly StoredStatus[] = ["open", "parked", "Completed", "Failed"];
    const turns = Array.from({ length: 24 }, (_, index) =>
      firstTurn(at, {
        create: instance({ workflow: index % 2 === 0 ? "even" : "odd" }),
        status: statuses[index % 4] ?? "open",
        at: 100 + index,
        attributes: { third: index % 3, name: `n${index % 3}`, big: index >= 12, tags: [`t${index % 5}`, "all"] },
      }),
    );
    await commit(at, ...turns);
    const listed = async (filter: ListFilter) => {
      const rows = await store().listInstances(at.tenant, filter, { limit: 100 });
      return rows.map(({ createdAt }) => createdAt - 100);
    };
    const expected = (keep: (index: number) => boolean) =>
      turns
        .map((_, index) => index)
        .filter(keep)
        .reverse();
    assert.deepEqual(
      await listed({}),
      expected(() => true),
    );
    assert.deepEqual(
      await listed({ workflow: "odd" }),
      expected((index) => index % 2 === 1),
    );
    assert.deepEqual(
      await listed({ statuses: ["parked", "Failed"] }),
      expected((index) => index % 4 === 1 || index % 4 === 3),
    );
    assert.deepEqual(await listed({ statuses: [] }), []);
    assert.deepEqual(
      await listed({ startedAfter: 104, startedBefore: 110 }),
      expected((index) => index > 4 && index < 10),
    );
    assert.deepEqual(
      await listed({ attributes: { third: 1 } }),
      expected((index) => index % 3 === 1),
    );
    assert.deepEqual(
      await listed({ attributes: { name: "n2", big: true } }),
      expected((index) => index % 3 === 2 && index >= 12),
    );
    assert.deepEqual(
      await listed({ attributes: { tags: "t4" } }),
      expected((index) => index % 5 === 4),
    );
    assert.deepEqual(
      await listed({ attributes: { tags: "all", third: 0 }, workflow: "even" }),
      expected((index) => index % 6 === 0),
    );
    assert.deepEqual(await listed({ attributes: { third: "1" } }), []);
    assert.deepEqual(await listed({ attributes: { missing: 1 } }), []);
    assert.deepEqual(await listed({ attributes: { name: "t1" } }), []);
  });

  test("H096 pages of instances that started at one instant neither skip nor repeat", async () => {
    const at = await scenario(store());
    const turns = Array.from({ length: 60 }, () => firstTurn(at, { at: 7 }));
    await commit(at, ...turns);
    for (const limit of [1, 7, 60, 100]) {
      const seen: string[] = [];
      for (;;) {
        const after = seen.at(-1);
        const page = await store().listInstances(at.tenant, {}, { limit, ...(after !== undefined && { after }) });
        if (page.length === 0) break;
        seen.push(...page.map(({ run }) => run));
      }
      assert.deepEqual(seen, turns.map(({ run }) => run).reverse());
    }
  });

  test("busy and parked runs of the given shards are listed by run, and paged", async () => {
    const at = await scenario(store(), 5);
    const other = await scenario(store());
    await start(other, { busy: true, status: "parked" });
    const turns = Array.from({ length: 150 }, (_, index) =>
      firstTurn(at, {
        shard: shard(at, index % 4 === 0 ? index % 5 : 2),
        busy: index % 3 !== 0,
        status: index % 2 === 0 ? "parked" : "open",
        tenant: index % 10 === 0 ? `${at.tenant}/b` : at.tenant,
      }),
    );
    await commit(at, ...turns);
    const expected = {
      busy: turns.filter(({ busy }) => busy).map(({ run }) => run),
      parked: turns.filter(({ status }) => status === "parked").map(({ run }) => run),
    };
    for (const which of ["busy", "parked"] as const) {
      for (const limit of [7, 50, 1_000]) assert.deepEqual(await pages(at, which, limit), expected[which]);
    }
    assert.deepEqual(
      (await store().listRunnable([shard(at, 1)], "busy", { limit: 100 })).map(({ run }) => run),
      turns.filter((turn) => turn.busy && turn.shard === shard(at, 1)).map(({ run }) => run),
    );
    await commit(
      at,
      ...turns.map((turn) => next(at, turn, { tenant: turn.tenant, status: turn.busy ? "Completed" : "open", busy: turn.busy })),
    );
    assert.deepEqual(await pages(at, "busy", 100), []);
    assert.deepEqual(await pages(at, "parked", 100), []);
  });

  test("no read shows what belongs to another tenant", async () => {
    const at = await scenario(store());
    const turn = await start(at, {
      create: instance({ id: "secret", startKey: { key: "k", digest: "d" } }),
      attributes: { a: 1 },
    });
    const tenant = unique("tenant-");
    const key = { tenant, run: turn.run };
    assert.equal(await store().getInstance(key), undefined);
    assert.equal(await store().findInstance(tenant, "secret"), undefined);
    assert.equal(await store().findStartKey(tenant, "order", "k"), undefined);
    assert.deepEqual(await store().loadInstances([key]), []);
    assert.deepEqual(await store().readHistory(key, 1, 10), []);
    assert.equal(await store().readLastTurn(key), undefined);
    assert.deepEqual(await store().listInstances(tenant, {}, { limit: 10 }), []);
    assert.deepEqual(await store().listInstances(tenant, { attributes: { a: 1 } }, { limit: 10 }), []);
    const letter = message(at, turn.run);
    await store().post([letter]);
    await store().drop([{ ...letter, tenant }]);
    assert.equal((await store().listInbox(at.shards, { limit: 10 })).length, 1);
  });

  test("two tenants may use the same run, id, key, effect and message names", async () => {
    const at = await scenario(store());
    const other: Scenario = { ...at, tenant: unique("tenant-") };
    const create = instance({ id: "x", startKey: { key: "k", digest: "d" } });
    const run = unique("run-");
    const timers = [{ effect: "1", due: 1 }];
    for (const each of [at, other]) {
      await start(each, { run, create, timers, events: `["${each.tenant}"]`, attributes: { tenant: each.tenant } });
      await store().post([message(each, run, { message: "m" })]);
    }
    assert.equal((await store().listTimers(at.shards, 1, 10)).length, 2);
    assert.equal((await store().listInbox(at.shards, { limit: 10 })).length, 2);
    const closing = next(at, { ...firstTurn(at), run }, { status: "Completed" });
    assert.deepEqual(await commit(at, closing), [run]);
    assert.deepEqual(
      (await store().listTimers(at.shards, 1, 10)).map(({ tenant }) => tenant),
      [other.tenant],
    );
    assert.deepEqual(
      (await store().listInbox(at.shards, { limit: 10 })).map(({ tenant }) => tenant),
      [other.tenant],
    );
    const [mine, theirs] = await store().loadInstances([
      { tenant: at.tenant, run },
      { tenant: other.tenant, run },
    ]);
    assert.deepEqual([mine?.row.status, mine?.turns.length], ["Completed", 2]);
    assert.deepEqual([theirs?.row.status, theirs?.turns[0]?.events], ["open", `["${other.tenant}"]`]);
    assert.deepEqual([mine?.row.attributes, theirs?.row.attributes], [{ tenant: at.tenant }, { tenant: other.tenant }]);
  });

  async function pages(at: Scenario, which: "busy" | "parked", limit: number): Promise<readonly string[]> {
    const seen: InstanceRow[] = [];
    for (;;) {
      const after = seen.at(-1);
      const page = await store().listRunnable(at.shards, which, { limit, ...(after !== undefined && { after }) });
      seen.push(...page);
      if (page.length < limit) return seen.map(({ run }) => run);
    }
  }
}
