import assert from "node:assert/strict";
import { isOpenStatus, openStatuses, type RunImport, type StoredStatus } from "../../engine/ports/store.ts";
import { runIdPrefix } from "../../engine/run-id.ts";
import {
  child,
  commit,
  deadLetter,
  firstTurn,
  inboxOf,
  instance,
  message,
  next,
  publication,
  type Scenario,
  scenario,
  shard,
  start,
  timersOf,
  unique,
} from "./scenario.ts";
import type { Suite } from "./suite.ts";

const noon = Date.UTC(2026, 5, 1, 12);

export function runs({ test, store }: Suite): void {
  test("a run that is parked, paused or compensating is open: it holds its id, takes turns and has no end", async () => {
    const at = await scenario(store());
    for (const status of openStatuses) {
      assert.ok(isOpenStatus(status));
      const turn = await start(at, { status, create: instance({ id: status }) });
      const row = await store().getInstance(turn);
      assert.deepEqual([row?.status, row?.closedAt], [status, undefined]);
      const rival = firstTurn(at, { create: instance({ id: status }) });
      const brief = firstTurn(at, { create: instance({ id: status }), status: "Completed" });
      assert.deepEqual(await commit(at, rival, brief), []);
      const second = next(at, turn, { status });
      assert.deepEqual(await commit(at, second), [turn.run]);
      assert.equal((await store().getInstance(turn))?.closedAt, undefined);
      assert.deepEqual(await commit(at, next(at, second, { status: "Completed" })), [turn.run]);
    }
    const listed = await store().listInstances(at.tenant, { statuses: openStatuses }, { limit: 10 });
    assert.deepEqual(listed, []);
  });

  const imported = (at: Scenario, details: Partial<RunImport["row"]> = {}): RunImport => ({
    row: {
      tenant: at.tenant,
      run: unique("run-"),
      id: unique("id-"),
      shard: shard(at, 1),
      workflow: "order",
      version: "2",
      status: "open",
      busy: true,
      tail: 5,
      createdAt: 100,
      parent: { tenant: at.tenant, id: "up", run: "above", effect: "1" },
      correlationId: "c",
      ...details,
    },
    attributes: { city: "Bern", tags: ["a"] },
    turns: [
      { seq: 1, count: 2, at: 100, node: "n", events: '[{"t":"\\u001f"},{}]' },
      { seq: 3, count: 3, at: 200, node: "m", events: "[{},{},{}]" },
    ],
    inbox: [
      { message: "second", fact: '"2"' },
      { message: "first", fact: '"1"' },
    ],
  });

  test("where a run comes from is kept, and its start key is its own; one that is in use refuses all of it", async () => {
    const at = await scenario(store());
    const origin = { from: { id: "o", run: "above", at: 5, reset: true }, importedAt: 5 } as const;
    const startKey = { key: "fork o k", digest: "d" };
    const run = { ...imported(at, { origin }), startKey };
    assert.equal(await store().importRun(run), "done");
    assert.deepEqual((await store().getInstance(run.row))?.origin, origin);
    assert.deepEqual((await store().listInstances(at.tenant, {}, { limit: 1 }))[0]?.origin, origin);
    assert.deepEqual(await store().findStartKey(at.tenant, "order", startKey.key), { run: run.row.run, digest: "d" });
    const again = { ...imported(at), startKey };
    assert.equal(await store().importRun(again), "key-taken");
    assert.equal(await store().getInstance(again.row), undefined);
    assert.deepEqual(await inboxOf(at, again.row.run), []);
    assert.equal(await store().importRun({ ...again, startKey: { key: "other", digest: "d" } }), "done");
  });

  test("a run and the one that takes its place are written together: the one ends, the other has its id, history and messages", async () => {
    const at = await scenario(store());
    const turn = await start(at, { timers: [{ effect: "1", due: 9 }] });
    const id = turn.create?.id ?? "";
    const successor = { ...imported(at, { id, shard: shard(at) }), startKey: { key: "reset k", digest: "d" } };
    const neighbour = firstTurn(at);
    const closing = next(at, turn, { status: "Terminated", successor });
    assert.deepEqual(await commit(at, neighbour, closing), [neighbour.run, turn.run]);
    assert.equal((await store().getInstance(turn))?.status, "Terminated");
    assert.equal((await store().findInstance(at.tenant, id))?.run, successor.row.run);
    const [loaded] = await store().loadInstances([successor.row]);
    assert.deepEqual(loaded, { row: { ...successor.row, nonce: "", attributes: successor.attributes }, turns: successor.turns });
    assert.deepEqual(await inboxOf(at, successor.row.run), ["second", "first"]);
    assert.deepEqual(await timersOf(at, turn.run), []);
    assert.equal((await store().findStartKey(at.tenant, "order", "reset k"))?.run, successor.row.run);
  });

  test("a run whose successor cannot be written does not end, and neither does one whose turn is refused have one", async () => {
    const at = await scenario(store());
    const turn = await start(at);
    const id = turn.create?.id ?? "";
    const run = imported(at, { id, shard: shard(at) });
    const there = imported(at);
    assert.equal(await store().importRun(there), "done");
    for (const successor of [
      { ...run, row: { ...run.row, run: there.row.run } },
      { ...run, row: { ...run.row, id: there.row.id } },
      { ...run, turns: run.turns.map((each) => ({ ...each, node: "\u0000" })) },
    ]) {
      const outcome = await store().commit({ fence: at.fence, turns: [next(at, turn, { status: "Terminated", successor })] });
      assert.deepEqual([[...outcome.done], [...outcome.failed.keys()]], [[], [turn.run]]);
      assert.equal((await store().getInstance(turn))?.status, "open");
    }
    const stale = { ...next(at, turn, { status: "Terminated", successor: run }), tail: 99 };
    assert.deepEqual(await commit(at, stale), []);
    assert.equal(await store().getInstance(run.row), undefined);
    assert.deepEqual(await commit(at, next(at, turn, { status: "Terminated", successor: run })), [turn.run]);
  });

  test("an imported run is there whole, is found like any other, and goes on under the owner of its shard", async () => {
    const at = await scenario(store());
    const run = imported(at);
    assert.equal(await store().importRun(run), "done");
    const [loaded] = await store().loadInstances([run.row]);
    assert.deepEqual(loaded, { row: { ...run.row, nonce: "", attributes: run.attributes }, turns: run.turns });
    assert.deepEqual(await inboxOf(at, run.row.run), ["second", "first"]);
    assert.equal((await store().findInstance(at.tenant, run.row.id))?.run, run.row.run);
    assert.deepEqual((await store().listInstances(at.tenant, { attributes: { city: "Bern" } }, { limit: 5 })).length, 1);
    assert.deepEqual((await store().listRunnable(at.shards, "busy", { limit: 5 })).length, 1);
    const turn = next(at, { ...firstTurn(at), ...run.row, tail: 0, count: 5 }, { consumed: ["first"] });
    assert.deepEqual(await commit(at, turn), [run.row.run]);
    assert.deepEqual(await inboxOf(at, run.row.run), ["second"]);
    const parked = imported(at, { status: "parked", busy: false });
    await store().importRun({ ...parked, attributes: {}, turns: [], inbox: [] });
    assert.deepEqual(
      (await store().listRunnable(at.shards, "parked", { limit: 5 })).map(({ run: each }) => each),
      [parked.row.run],
    );
  });

  test("a closed run is imported as it is, with no messages", async () => {
    const at = await scenario(store());
    const run = imported(at, { status: "Completed", busy: false, closedAt: 300 });
    await start(at, { create: instance({ id: run.row.id }) });
    assert.equal(await store().importRun(run), "done");
    const row = await store().getInstance(run.row);
    assert.deepEqual([row?.status, row?.closedAt], ["Completed", 300]);
    assert.deepEqual(await inboxOf(at, run.row.run), []);
  });

  test("an import whose run exists, or whose id an open run holds, writes nothing", async () => {
    const at = await scenario(store());
    const holder = await start(at);
    const known = imported(at, { run: holder.run });
    assert.equal(await store().importRun(known), "run-exists");
    const taken = imported(at, { id: holder.create?.id ?? "" });
    assert.equal(await store().importRun(taken), "id-taken");
    assert.equal(await store().getInstance(taken.row), undefined);
    assert.deepEqual(await store().readHistory(taken.row, 1, 10), []);
    assert.deepEqual([await inboxOf(at, taken.row.run), await inboxOf(at, holder.run)], [[], []]);
    assert.equal((await store().readHistory(holder, 1, 10)).length, 1);
    await commit(at, next(at, holder, { status: "Completed" }));
    assert.equal(await store().importRun(taken), "done");
    const rivals = Array.from({ length: 4 }, () => imported(at, { id: "one" }));
    const answers = await Promise.all(rivals.map((each) => store().importRun(each)));
    assert.deepEqual([...answers].sort(), ["done", "id-taken", "id-taken", "id-taken"]);
    const again = await Promise.all(Array.from({ length: 3 }, () => store().importRun(imported(at, { run: "same" }))));
    assert.deepEqual([...again].sort(), ["done", "run-exists", "run-exists"]);
    await assert.rejects(store().importRun({ ...imported(at), inbox: [{ message: "m", fact: "\u0000" }] }), {
      code: "PAYLOAD_UNSERIALIZABLE",
    });
  });

  test("a deleted run leaves nothing behind, and its neighbours keep everything", async () => {
    const at = await scenario(store());
    const everything = async (id: string) => {
      const turn = await start(at, {
        create: instance({ id, startKey: { key: id, digest: "d" } }),
        attributes: { mine: id },
        timers: [{ effect: "1", due: 5 }],
        waits: [{ effect: "1", name: "paid", key: "a", after: 0 }],
        deadLetters: [deadLetter({ effect: "1" }), deadLetter({ effect: "2", kind: "event" })],
      });
      await store().saveHeartbeats([{ ...turn, effect: "1", attempt: 1, at: 1, details: "1" }]);
      await store().saveStepOutcome({ ...turn, effect: "1", at: 1, outcome: "1" });
      return turn;
    };
    const [gone, open, kept] = [await everything("gone"), await everything("open"), await everything("kept")];
    const older = await start(at, { run: `${gone.run.slice(0, -1)}!`, create: instance({ id: "chain" }), status: "Completed" });
    const newer = await start(at, { create: instance({ id: "chain" }), status: "Failed" });
    await commit(at, next(at, gone, { status: "Completed" }), next(at, kept, { status: "Completed" }));
    await store().post([message(at, gone.run), message(at, open.run)]);
    const keys = [gone, open, newer, { tenant: unique("tenant-"), run: kept.run }, { tenant: at.tenant, run: unique("run-") }];
    assert.equal(await store().deleteRuns(keys), 2);
    assert.equal(await store().deleteRuns(keys), 0);
    assert.equal(await store().deleteRuns([]), 0);

    assert.deepEqual(await store().loadInstances([gone]), []);
    assert.equal(await store().findInstance(at.tenant, "gone"), undefined);
    assert.deepEqual(await store().readHistory(gone, 1, 10), []);
    assert.equal(await store().findStartKey(at.tenant, "order", "gone"), undefined);
    assert.deepEqual(await inboxOf(at, gone.run), []);
    assert.deepEqual(await store().readHeartbeats(gone), []);
    assert.deepEqual(await store().readStepOutcomes(gone), []);
    assert.equal(await store().getDeadLetter({ tenant: at.tenant, run: gone.run, effect: "2" }), undefined);
    assert.deepEqual(await store().listInstances(at.tenant, { attributes: { mine: "gone" } }, { limit: 5 }), []);
    assert.equal((await store().findInstance(at.tenant, "chain"))?.run, older.run);

    for (const { run } of [open, kept]) {
      const key = { tenant: at.tenant, run };
      assert.ok((await store().readHistory(key, 1, 10)).length > 0);
      assert.equal((await store().readHeartbeats(key)).length, 1);
      assert.equal((await store().readStepOutcomes(key)).length, 1);
      assert.notEqual(await store().getDeadLetter({ tenant: at.tenant, run: run, effect: "2" }), undefined);
    }
    for (const id of ["open", "kept"]) assert.notEqual(await store().findStartKey(at.tenant, "order", id), undefined);
    assert.deepEqual([(await timersOf(at, open.run)).length, (await inboxOf(at, open.run)).length], [1, 1]);
    assert.deepEqual((await store().publish(publication(at, { key: "a" }))).delivered, [{ run: open.run, shard: open.shard }]);
    const again = await start(at, { run: gone.run, create: instance({ id: "gone", startKey: { key: "gone", digest: "e" } }) });
    assert.deepEqual([(await store().getInstance(again))?.attributes, await timersOf(at, again.run)], [{}, []]);
  });

  test("a child's start key goes with it", async () => {
    const at = await scenario(store());
    const parent = await start(at);
    const made = child(at, parent, { startKey: { key: "child", digest: "d" } });
    await commit(at, next(at, parent, { at: 4_321, children: [made] }));
    await commit(at, next(at, { ...firstTurn(at), ...made, tail: 0, count: 0 }, { status: "Completed", tenant: at.tenant }));
    assert.equal(await store().deleteRuns([{ tenant: at.tenant, run: made.run }]), 1);
    assert.equal(await store().findStartKey(at.tenant, "order", "child"), undefined);
  });

  test("H096 runs that closed before a time are listed by tenant and run, over all tenants, and paged", async () => {
    const at = await scenario(store());
    const tenants = ["a", "b", "c"].map((each) => `${at.tenant}/${each}`);
    const statuses: readonly StoredStatus[] = ["Completed", "open", "Failed", "paused"];
    const turns = Array.from({ length: 90 }, (_, index) => {
      const made = noon + index * 10;
      return firstTurn(at, {
        tenant: tenants[index % 3] as string,
        run: runIdPrefix(made) + unique("x"),
        at: made,
        status: statuses[index % 4] ?? "open",
      });
    });
    await commit(at, ...turns);
    const late = turns[1] as (typeof turns)[number];
    await commit(at, next(at, late, { tenant: late.tenant, status: "Completed", at: noon + 10_000 }));
    const before = noon + 600;
    const expected = tenants.flatMap((tenant) =>
      turns.filter((turn) => turn.tenant === tenant && !isOpenStatus(turn.status) && turn.at < before).map(({ run }) => `${tenant} ${run}`),
    );
    for (const limit of [1, 7, 200]) {
      const seen: { tenant: string; run: string }[] = [];
      for (;;) {
        const page = await store().listClosedBefore(before, { limit, after: seen.at(-1) ?? { tenant: at.tenant, run: "" } });
        const mine = page.filter(({ tenant }) => tenants.includes(tenant));
        seen.push(...mine);
        if (mine.length < limit) break;
      }
      assert.deepEqual(
        seen.map(({ tenant, run }) => `${tenant} ${run}`),
        expected,
      );
    }
    const [first] = await store().listClosedBefore(before, { limit: 1, after: { tenant: tenants[0] as string, run: "" } });
    assert.deepEqual(first, await store().getInstance(turns[0] as (typeof turns)[number]));
    assert.ok((await store().listClosedBefore(before, { limit: 1_000 })).length >= expected.length);
    assert.deepEqual(
      (await store().listClosedBefore(noon + 20_000, { limit: 1_000, after: { tenant: tenants[1] as string, run: "" } }))
        .filter(({ tenant }) => tenant === tenants[1])
        .some(({ run }) => run === late.run),
      true,
      "one that closed late",
    );
  });
}
