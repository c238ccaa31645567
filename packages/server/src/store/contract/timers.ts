import assert from "node:assert/strict";
import { commit, firstTurn, next, scenario, shard, start, timersOf, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function timers({ test, store }: Suite): void {
  test("timers are set, moved and removed by their effect", async () => {
    const at = await scenario(store());
    const first = await start(at, {
      timers: [
        { effect: "1", due: 100 },
        { effect: "2", due: 50 },
      ],
    });
    assert.deepEqual(await timersOf(at, first.run), [
      ["2", 50],
      ["1", 100],
    ]);
    const second = next(at, first, {
      timers: [
        { effect: "1", due: 20 },
        { effect: "3.0", due: 70 },
      ],
      timersDone: ["2", "unknown"],
    });
    await commit(at, second);
    assert.deepEqual(await timersOf(at, first.run), [
      ["1", 20],
      ["3.0", 70],
    ]);
    await commit(at, next(at, second, { timersDone: ["1"], timers: [{ effect: "1", due: 30 }] }));
    assert.deepEqual(
      await timersOf(at, first.run),
      [
        ["1", 30],
        ["3.0", 70],
      ],
      "removed and set again in one turn",
    );
  });

  test("the last of two times for one effect in one turn holds", async () => {
    const at = await scenario(store());
    const first = await start(at, {
      timers: [
        { effect: "1", due: 9 },
        { effect: "1", due: 4 },
      ],
    });
    assert.deepEqual(await timersOf(at, first.run), [["1", 4]]);
  });

  test("a closing turn removes all timers of its run and sets none", async () => {
    const at = await scenario(store());
    const [closing, other] = await Promise.all([
      start(at, { timers: [{ effect: "1", due: 1 }] }),
      start(at, { timers: [{ effect: "1", due: 1 }] }),
    ]);
    await commit(at, next(at, closing, { status: "Completed", timers: [{ effect: "2", due: 1 }] }));
    assert.deepEqual(await timersOf(at, closing.run), []);
    assert.equal((await timersOf(at, other.run)).length, 1);
    const brief = await start(at, { status: "Completed", timers: [{ effect: "1", due: 1 }] });
    assert.deepEqual(await timersOf(at, brief.run), []);
  });

  test("only timers due at the time or before are listed, of the given shards", async () => {
    const at = await scenario(store());
    const turn = await start(at, {
      shard: shard(at, 1),
      timers: [
        { effect: "a", due: 100 },
        { effect: "b", due: 101 },
      ],
    });
    const listed = await store().listTimers(at.shards, 100, 10);
    assert.deepEqual(listed, [{ tenant: at.tenant, run: turn.run, shard: shard(at, 1), effect: "a", due: 100 }]);
    assert.deepEqual(await store().listTimers(at.shards, 99, 10), []);
    assert.deepEqual(await store().listTimers([shard(at)], 1_000, 10), []);
    assert.deepEqual(await store().listTimers([], 1_000, 10), []);
  });

  test("due times beyond 32 bits are exact", async () => {
    const at = await scenario(store());
    const due = 4_102_444_800_123;
    const turn = await start(at, { timers: [{ effect: "1", due }] });
    assert.deepEqual(await timersOf(at, turn.run), [["1", due]]);
    assert.deepEqual(await store().listTimers(at.shards, due - 1, 10), []);
  });

  test("H096 timers come earliest first, ties by run and effect, whatever the limit and however they are spread over shards", async () => {
    const at = await scenario(store(), 6);
    const turns = Array.from({ length: 240 }, (_, index) =>
      firstTurn(at, {
        run: unique("run-"),
        // Skewed: most timers are in one shard.
        shard: shard(at, index % 3 === 0 ? index % 6 : 0),
        timers: [
          { effect: "2", due: 1_000 + (index % 4) },
          { effect: "1", due: 1_000 },
        ],
      }),
    );
    await commit(at, ...turns);
    const expected = turns
      .flatMap(({ run, timers: set }) => set.map(({ effect, due }) => [due, run, effect] as const))
      .sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : a[2] < b[2] ? -1 : 1));
    for (const limit of [1, 7, 100, 480, 5_000]) {
      const listed = await store().listTimers(at.shards, 2_000, limit);
      assert.deepEqual(
        listed.map(({ due, run, effect }) => [due, run, effect]),
        expected.slice(0, limit),
      );
    }
  });
}
