import assert from "node:assert/strict";
import type { NewInstance, ShardEpoch, TurnWrite } from "../../engine/ports/store.ts";
import {
  child,
  commit,
  deadLetter,
  firstTurn,
  inboxOf,
  instance,
  laterTurn,
  message,
  next,
  publication,
  type Scenario,
  scenario,
  shard,
  start,
  tailOf,
  timersOf,
  unique,
} from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function turns({ test, store }: Suite): void {
  test("a first turn stores the instance and its events", async () => {
    const at = await scenario(store());
    const parent = { tenant: at.tenant, id: "up", run: "above", effect: "3.1/0" };
    const turn = await start(at, {
      create: instance({ id: "first", workflow: "w", version: "7", parent, correlationId: "c-1" }),
      at: 1_764_400_000_123,
      count: 3,
      busy: true,
      attributes: { city: "Bern", total: 12.5, paid: false, tags: ["a", "b"] },
    });
    const row = await store().getInstance(turn);
    assert.deepEqual(row, {
      tenant: at.tenant,
      run: turn.run,
      id: "first",
      shard: shard(at),
      workflow: "w",
      version: "7",
      status: "open",
      busy: true,
      tail: 3,
      nonce: turn.nonce,
      createdAt: 1_764_400_000_123,
      parent,
      correlationId: "c-1",
      attributes: { city: "Bern", total: 12.5, paid: false, tags: ["a", "b"] },
    });
    assert.deepEqual(await store().readHistory(turn, 1, 10), [
      { seq: 1, count: 3, at: 1_764_400_000_123, node: "node", events: turn.events },
    ]);
  });

  test("later turns append, and change tail, nonce, status and busy", async () => {
    const at = await scenario(store());
    const first = await start(at, { busy: true });
    const second = next(at, first, { status: "parked", count: 5 });
    assert.deepEqual(await commit(at, second), [first.run]);
    const row = await store().getInstance(first);
    assert.deepEqual([row?.tail, row?.nonce, row?.status, row?.busy, row?.closedAt], [7, second.nonce, "parked", false, undefined]);
    const turns = await store().readHistory(first, 1, 10);
    assert.deepEqual(
      turns.map(({ seq, count, events }) => [seq, count, events]),
      [
        [1, 2, first.events],
        [3, 5, second.events],
      ],
    );
  });

  test("a closing turn stores the outcome and its time, and clears busy", async () => {
    const at = await scenario(store());
    const first = await start(at, { busy: true });
    await commit(at, next(at, first, { status: "Failed", at: 5_555, busy: true }));
    const row = await store().getInstance(first);
    assert.deepEqual([row?.status, row?.closedAt, row?.busy, row?.createdAt], ["Failed", 5_555, false, 1_000]);
  });

  test("one turn can create an instance and close it", async () => {
    const at = await scenario(store());
    const turn = await start(at, { status: "Completed" });
    assert.equal((await store().getInstance(turn))?.status, "Completed");
    await start(at, { create: instance({ id: turn.create?.id ?? "" }) });
  });

  test("H095 a turn that was decided on an outdated tail is refused and leaves nothing behind", async () => {
    const at = await scenario(store());
    const first = await start(at);
    for (const tail of [0, 1, 3, 4]) {
      const turn = next(at, first, {
        tail,
        status: "Completed",
        attributes: { x: 1 },
        timers: [{ effect: "1", due: 5 }],
        children: [child(at, first)],
        sends: [message(at, first.run)],
      });
      const outcome = await store().commit({ fence: at.fence, turns: [turn] });
      assert.deepEqual([outcome.done.size, outcome.rejectedChildren.size, outcome.failed.size], [0, 0, 0]);
      assert.equal(await store().getInstance({ tenant: at.tenant, run: turn.children[0]?.run ?? "" }), undefined);
    }
    const row = await store().getInstance(first);
    assert.deepEqual([row?.tail, row?.status, row?.nonce, row?.attributes], [2, "open", first.nonce, {}]);
    assert.equal((await store().readHistory(first, 1, 10)).length, 1);
    assert.deepEqual(await timersOf(at, first.run), []);
    assert.deepEqual(await inboxOf(at, first.run), []);
  });

  test("H095 of two writers on one tail exactly one wins", async () => {
    const at = await scenario(store());
    const first = await start(at);
    let { tail, count } = first;
    for (let round = 0; round < 15; round += 1) {
      tail += count;
      const rivals = Array.from({ length: 4 }, (_, index) => next(at, first, { tail, nonce: `${round}/${index}`, events: `[${index},0]` }));
      const outcomes = await Promise.all(rivals.map((turn) => commit(at, turn)));
      const winners = rivals.filter((_, index) => outcomes[index]?.length === 1);
      assert.equal(winners.length, 1);
      assert.equal((await store().getInstance(first))?.nonce, winners[0]?.nonce);
      assert.equal((await store().readLastTurn(first))?.events, winners[0]?.events);
      count = 2;
    }
    assert.equal((await store().readHistory(first, 1, 100)).length, 16);
  });

  test("a turn for a run that is unknown, closed, of another shard or of another tenant is refused", async () => {
    const at = await scenario(store());
    const open = await start(at);
    const closed = await start(at, { status: "Completed" });
    assert.deepEqual(
      await commit(
        at,
        next(at, open, { run: unique("run-") }),
        next(at, closed),
        next(at, open, { shard: shard(at, 1) }),
        next(at, { ...open, tenant: unique("tenant-") }),
      ),
      [],
    );
    assert.equal(await tailOf(at, open.run), 2);
    assert.equal(await tailOf(at, closed.run), 2);
  });

  test("H051 an id held by an open instance is refused, whatever the workflow; the first run is untouched", async () => {
    const at = await scenario(store());
    const first = await start(at, { create: instance({ id: "taken", workflow: "a" }) });
    const before = await store().getInstance(first);
    const second = firstTurn(at, { create: instance({ id: "taken", workflow: "b", version: "2" }) });
    const other = firstTurn(at);
    assert.deepEqual(await commit(at, second, other), [other.run]);
    assert.deepEqual(await store().getInstance(first), before);
    assert.equal(await store().getInstance(second), undefined);
    assert.deepEqual(await store().readHistory(second, 1, 10), []);
  });

  test("H051 the same id is free in another tenant, and again once its run has closed", async () => {
    const at = await scenario(store());
    const elsewhere = { ...at, tenant: unique("tenant-") };
    const first = await start(at, { create: instance({ id: "same" }) });
    await start(elsewhere, { create: instance({ id: "same" }) });
    await commit(at, next(at, first, { status: "Cancelled" }));
    const second = await start(at, { create: instance({ id: "same" }) });
    assert.equal((await store().findInstance(at.tenant, "same"))?.run, second.run);
    assert.equal((await store().getInstance(first))?.status, "Cancelled");
  });

  test("an id that one turn of a flush frees can be taken by another of the same flush", async () => {
    const at = await scenario(store());
    const first = await start(at, { create: instance({ id: "passed-on" }) });
    const second = firstTurn(at, { create: instance({ id: "passed-on" }) });
    assert.deepEqual(await commit(at, second, next(at, first, { status: "ContinuedAsNew" })), [second.run, first.run]);
    assert.equal((await store().findInstance(at.tenant, "passed-on"))?.run, second.run);
  });

  test("of two first turns with one id in one flush the first wins", async () => {
    const at = await scenario(store());
    const [first, second] = [firstTurn(at, { create: instance({ id: "twice" }) }), firstTurn(at, { create: instance({ id: "twice" }) })];
    assert.deepEqual(await commit(at, first, second), [first.run]);
    assert.equal((await store().findInstance(at.tenant, "twice"))?.run, first.run);
  });

  test("a run that exists is not created again, even under a new id", async () => {
    const at = await scenario(store());
    const first = await start(at);
    assert.deepEqual(await commit(at, { ...first, create: instance(), nonce: "again" }), []);
    await commit(at, next(at, first, { status: "Completed" }));
    assert.deepEqual(await commit(at, { ...first, nonce: "again" }), []);
    assert.equal((await store().readHistory(first, 1, 10)).length, 2);
  });

  test("a first turn with a tail is refused", async () => {
    const at = await scenario(store());
    assert.deepEqual(await commit(at, firstTurn(at, { tail: 2 })), []);
  });

  test("H052 a start key refuses a second start with the same workflow and key, also when the first run has closed", async () => {
    const at = await scenario(store());
    const startKey = { key: "k", digest: "d1" };
    const first = await start(at, { create: instance({ startKey }), status: "Completed" });
    const again = firstTurn(at, { create: instance({ startKey: { key: "k", digest: "d2" } }) });
    const otherWorkflow = firstTurn(at, { create: instance({ startKey, workflow: "other" }) });
    assert.deepEqual(await commit(at, again, otherWorkflow), [otherWorkflow.run]);
    assert.deepEqual(await store().findStartKey(at.tenant, "order", "k"), { run: first.run, digest: "d1" });
    assert.equal((await store().findStartKey(at.tenant, "other", "k"))?.run, otherWorkflow.run);
    assert.equal(await store().findStartKey(unique("tenant-"), "order", "k"), undefined);
    assert.equal(await store().getInstance(again), undefined);
  });

  test("H052 of two starts with one key in one flush the first wins", async () => {
    const at = await scenario(store());
    const startKey = { key: "batch", digest: "d" };
    const [first, second, third] = [startKey, startKey, { key: "j", digest: "d" }].map((each) =>
      firstTurn(at, { create: instance({ startKey: each }) }),
    );
    assert.ok(first && second && third);
    assert.deepEqual(await commit(at, first, second, third), [first.run, third.run]);
  });

  test("a refused start does not keep its key", async () => {
    const at = await scenario(store());
    await start(at, { create: instance({ id: "held" }) });
    const refused = firstTurn(at, { create: instance({ id: "held", startKey: { key: "free", digest: "d" } }) });
    assert.deepEqual(await commit(at, refused), []);
    assert.equal(await store().findStartKey(at.tenant, "order", "free"), undefined);
    const accepted = await start(at, { create: instance({ startKey: { key: "free", digest: "e" } }) });
    const other = firstTurn(at, { create: instance({ startKey: { key: "other", digest: "d" } }) });
    assert.deepEqual(await commit(at, accepted, other), [other.run], "a start that is sent again");
    assert.deepEqual(await store().findStartKey(at.tenant, "order", "free"), { run: accepted.run, digest: "e" });
  });

  test("start keys older than a time expire", async () => {
    const at = await scenario(store());
    for (const [key, time] of [
      ["old", 10],
      ["young", 20],
    ] as const) {
      await start(at, { at: time, create: instance({ startKey: { key, digest: "d" } }) });
    }
    await store().expireStartKeys(20);
    assert.equal(await store().findStartKey(at.tenant, "order", "old"), undefined);
    assert.notEqual(await store().findStartKey(at.tenant, "order", "young"), undefined);
  });

  test("attributes are replaced as a whole, and removed by an empty set", async () => {
    const at = await scenario(store());
    const first = await start(at, { attributes: { a: 1, b: "x" } });
    const second = next(at, first);
    await commit(at, second);
    assert.deepEqual((await store().getInstance(first))?.attributes, { a: 1, b: "x" }, "untouched by a turn without attributes");
    const third = next(at, second, { attributes: { c: ["p"] } });
    await commit(at, third);
    assert.deepEqual((await store().getInstance(first))?.attributes, { c: ["p"] });
    await commit(at, next(at, third, { attributes: {} }));
    assert.deepEqual((await store().getInstance(first))?.attributes, {});
  });

  test("a mixed flush commits exactly what its guards admit", async () => {
    const at = await scenario(store());
    const runs = await Promise.all([start(at), start(at, { shard: shard(at, 1) }), start(at)]);
    const [good, foreign, stale] = runs;
    await start(at, { create: instance({ id: "busy-id" }) });
    const closing = await start(at);
    const flush = [
      next(at, good, { timers: [{ effect: "1", due: 10 }] }),
      firstTurn(at, { create: instance({ id: "busy-id" }), timers: [{ effect: "1", due: 10 }] }),
      next(at, foreign, { timers: [{ effect: "1", due: 10 }] }),
      firstTurn(at, { timers: [{ effect: "1", due: 10 }] }),
      next(at, stale, { tail: 9, timers: [{ effect: "1", due: 10 }] }),
      next(at, closing, { status: "Completed" }),
    ];
    const { done } = await store().commit({ fence: at.fence.slice(0, 1), turns: flush });
    assert.deepEqual(
      flush.map(({ run }) => done.has(run)),
      [true, false, false, true, false, true],
    );
    for (const turn of flush) {
      const stored = await timersOf(at, turn.run);
      assert.equal(stored.length, done.has(turn.run) && turn.timers.length > 0 ? 1 : 0);
    }
  });

  test("a turn comes to the same alone as among others", async () => {
    type Case = (at: Scenario) => Promise<{ readonly turn: TurnWrite; readonly fence?: readonly ShardEpoch[] }>;
    const first = (at: Scenario, create: Partial<NewInstance> = {}, details: Partial<TurnWrite> = {}) =>
      firstTurn(at, { run: "run", nonce: "n", create: instance({ id: "id", ...create }), ...details });
    const later = (at: Scenario, details: Partial<TurnWrite> = {}) =>
      laterTurn(at, { run: "run", tail: 2, nonce: "n", events: "[{},{}]", ...details });
    const begun = async (at: Scenario, details: Partial<TurnWrite> = {}) =>
      assert.deepEqual(await commit(at, first(at, {}, details)), ["run"]);
    const startKey = { key: "key", digest: "d" };
    const parent = { tenant: "t", id: "up", run: "above", effect: "3" };
    const cases: Readonly<Record<string, Case>> = {
      "a first turn": async (at) => ({ turn: first(at, {}, { busy: true, at: 77 }) }),
      "one of a child": async (at) => ({ turn: first(at, { parent, correlationId: "c" }) }),
      "one with a start key": async (at) => ({ turn: first(at, { startKey }) }),
      "one whose start key is taken": async (at) => {
        await start(at, { create: instance({ startKey: { ...startKey, digest: "other" } }) });
        return { turn: first(at, { startKey }) };
      },
      "one whose id is taken": async (at) => {
        await start(at, { create: instance({ id: "id" }) });
        return { turn: first(at, { startKey }) };
      },
      "one of a run that exists": async (at) => {
        await begun(at);
        return { turn: first(at, { id: "other", startKey }) };
      },
      "one that closes": async (at) => ({ turn: first(at, { startKey }, { status: "Completed", busy: true }) }),
      "one that closes, and whose id is taken": async (at) => {
        await start(at, { create: instance({ id: "id" }) });
        return { turn: first(at, { startKey }, { status: "Failed" }) };
      },
      "one with a tail": async (at) => ({ turn: first(at, {}, { tail: 1 }) }),
      "a later turn": async (at) => {
        await begun(at);
        return { turn: later(at, { busy: true, count: 7, status: "paused" }) };
      },
      "one decided on another tail": async (at) => {
        await begun(at);
        return { turn: later(at, { tail: 1 }) };
      },
      "one of another shard": async (at) => {
        await begun(at);
        return { turn: later(at, { shard: shard(at, 1) }) };
      },
      "one of an unknown run": async (at) => ({ turn: later(at) }),
      "one of a closed run": async (at) => {
        await begun(at, { status: "Completed" });
        return { turn: later(at) };
      },
      "one that closes its run": async (at) => {
        await begun(at, {
          timers: [{ effect: "1", due: 5 }],
          sends: [message(at, "run", { message: "m" }), message(at, "run", { message: "o" })],
          waits: [{ effect: "2", name: "paid", key: "k", after: 0 }],
          deadLetters: [deadLetter({ effect: "3" }), deadLetter({ effect: "4", kind: "workflow" })],
        });
        return { turn: later(at, { status: "Cancelled", busy: true, at: 99, consumed: ["m"], timersDone: ["1"], waitsDone: ["2"] }) };
      },
      "one that closes its run, and says nothing of what it leaves": async (at) => {
        await begun(at, {
          timers: [{ effect: "1", due: 5 }],
          sends: [message(at, "run", { message: "m" })],
          waits: [{ effect: "2", name: "paid", key: "k", after: 0 }],
          deadLetters: [deadLetter({ effect: "3" })],
        });
        return { turn: later(at, { status: "Completed" }) };
      },
      "one that leaves all as it is": async (at) => {
        await begun(at, { timers: [{ effect: "1", due: 5 }], waits: [{ effect: "2", name: "paid", key: "k", after: 0 }] });
        return { turn: later(at) };
      },
      "one under an old epoch": async (at) => {
        await begun(at);
        return { turn: later(at), fence: at.fence.map((each) => (each.shard === shard(at) ? { ...each, epoch: each.epoch - 1 } : each)) };
      },
      "one of a shard that is not owned": async (at) => {
        await begun(at);
        return { turn: later(at), fence: at.fence.filter((each) => each.shard !== shard(at)) };
      },
    };
    for (const [name, prepare] of Object.entries(cases)) {
      const seen = async (company: boolean) => {
        const at = await scenario(store());
        const { turn, fence = at.fence } = await prepare(at);
        const others = company ? [firstTurn(at, { shard: shard(at, 1) })] : [];
        const { done, failed } = await store().commit({ fence, turns: [...others, turn] });
        for (const other of others) assert.ok(done.has(other.run), name);
        const key = await store().findStartKey(at.tenant, "order", startKey.key);
        const letters = await store().listDeadLetters(at.tenant, {}, { limit: 10 });
        return {
          done: done.has(turn.run),
          failed: [...failed.keys()],
          row: { ...(await store().getInstance(turn)), tenant: "", shard: 0 },
          history: await store().readHistory(turn, 1, 100),
          key: key?.digest,
          inbox: await inboxOf(at, "run"),
          timers: await timersOf(at, "run"),
          letters: letters.map(({ effect }) => effect),
          waiting: (await store().publish(publication(at, { key: "k" }))).delivered.length,
        };
      };
      assert.deepEqual(await seen(false), await seen(true), name);
    }
  });

  test("an empty flush is done at once", async () => {
    const { done, failed } = await store().commit({ fence: [], turns: [] });
    assert.deepEqual([done.size, failed.size], [0, 0]);
  });

  test("a flush of a thousand turns is one flush", async () => {
    const at = await scenario(store());
    const firsts = Array.from({ length: 1_000 }, (_, index) =>
      firstTurn(at, { shard: shard(at, index % 2), timers: [{ effect: "1", due: index }] }),
    );
    assert.equal((await commit(at, ...firsts)).length, 1_000);
    const seconds = firsts.map((turn) => next(at, turn, { status: "Completed" }));
    assert.equal((await commit(at, ...seconds)).length, 1_000);
    assert.deepEqual(await store().listTimers(at.shards, 10_000, 10), []);
  });
}
