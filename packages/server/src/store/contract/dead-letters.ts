import assert from "node:assert/strict";
import type { DeadLetter, DeadLetterFilter, DeadLetterKind } from "../../engine/ports/store.ts";
import { commit, deadLetter, firstTurn, instance, next, type Scenario, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const kinds: readonly DeadLetterKind[] = ["activity", "workflow", "compensation", "event"];

export function deadLetters({ test, store }: Suite): void {
  const letters = (at: Scenario, filter: DeadLetterFilter = {}) => store().listDeadLetters(at.tenant, filter, { limit: 100 });
  const outside = (at: Scenario, details: Partial<DeadLetter> = {}): DeadLetter => ({
    ...deadLetter({ kind: "event" }),
    tenant: at.tenant,
    run: unique("run-"),
    at: 9,
    workflow: "order",
    id: "gone",
    ...details,
  });

  test("a turn writes dead letters with what its run is; a later one of the same effect takes the place of the former", async () => {
    const at = await scenario(store());
    const written = deadLetter({ effect: "1" });
    const turn = await start(at, {
      at: 77,
      create: instance({ id: "i", workflow: "w" }),
      deadLetters: [deadLetter({ effect: "1", attempts: 1 }), written],
    });
    const key = { tenant: at.tenant, run: turn.run, effect: "1" };
    assert.deepEqual(await store().getDeadLetter({ tenant: at.tenant, run: turn.run, effect: "1" }), {
      ...key,
      ...written,
      at: 77,
      workflow: "w",
      id: "i",
    });
    const later = deadLetter({ effect: "1", kind: "workflow", name: "child", attempts: 4, failure: "{}" });
    await commit(at, next(at, turn, { at: 88, deadLetters: [later] }));
    assert.deepEqual(await letters(at), [{ ...key, ...later, at: 88, workflow: "w", id: "i" }]);
    assert.equal(await store().getDeadLetter({ tenant: at.tenant, run: turn.run, effect: "2" }), undefined);
    assert.equal(await store().getDeadLetter({ tenant: unique("tenant-"), run: turn.run, effect: "1" }), undefined);
  });

  test("a turn removes the dead letters of effects that are done, and a refused one neither writes nor removes", async () => {
    const at = await scenario(store());
    const turn = await start(at, { deadLetters: [deadLetter({ effect: "1" }), deadLetter({ effect: "2" })] });
    const other = await start(at, { deadLetters: [deadLetter({ effect: "1" })] });
    await commit(at, next(at, other, { tail: 9, deadLetters: [deadLetter()], deadLettersDone: ["1"] }), firstTurn(at));
    await commit(at, next(at, turn, { deadLettersDone: ["1", "unknown"], deadLetters: [deadLetter({ effect: "3" })] }));
    const left = (await letters(at)).map(({ run, effect }) => `${run} ${effect}`);
    assert.deepEqual(left.sort(), [`${turn.run} 2`, `${turn.run} 3`, `${other.run} 1`].sort());
  });

  test("a closing turn removes those of activities and compensations but for its own; those of workflows and events stay", async () => {
    const at = await scenario(store());
    const turn = await start(at, { deadLetters: kinds.map((kind) => deadLetter({ effect: kind, kind })) });
    const open = await start(at, { deadLetters: [deadLetter({ effect: "open" })] });
    const own = [deadLetter({ effect: "own" }), deadLetter({ effect: "activity", attempts: 9 })];
    await commit(at, next(at, turn, { status: "Failed", deadLetters: own, deadLettersDone: ["event"] }));
    const left = (await letters(at)).map(({ effect, attempts }) => [effect, attempts]);
    assert.deepEqual(left.sort(), [
      ["activity", 9],
      ["open", 3],
      ["own", 3],
      ["workflow", 3],
    ]);
    await commit(at, next(at, open, { status: "Completed" }));
    const brief = await start(at, { status: "Failed", deadLetters: [deadLetter({ effect: "brief" })] });
    assert.equal((await letters(at)).length, 4);
    assert.equal((await store().getDeadLetter({ tenant: at.tenant, run: brief.run, effect: "brief" }))?.name, "charge");
  });

  test("a dead letter that no turn writes is kept as it was first, whether its run is known or not", async () => {
    const at = await scenario(store());
    const letter = outside(at);
    await store().addDeadLetter({ ...letter, shard: shard(at) });
    await store().addDeadLetter({ ...letter, shard: shard(at), at: 10, name: "other" });
    assert.deepEqual(await letters(at), [letter]);
    const { run, effect } = letter;
    const own = deadLetter({ effect, attempts: 7 });
    await start(at, { run, at: 12, create: instance({ id: "its-own", workflow: "flow" }), deadLetters: [own] });
    assert.deepEqual(await letters(at), [{ tenant: at.tenant, run, ...own, at: 12, workflow: "flow", id: "its-own" }]);
    await assert.rejects(store().addDeadLetter({ ...outside(at, { failure: "\u0000" }), shard: shard(at) }), {
      code: "PAYLOAD_UNSERIALIZABLE",
    });
  });

  test("H096 dead letters are listed newest first and filtered, and pages neither skip nor repeat", async () => {
    const at = await scenario(store());
    const all = Array.from({ length: 60 }, (_, index) =>
      outside(at, {
        run: `run-${index % 7}`,
        effect: `e-${String(index).padStart(2, "0")}`,
        at: 10 + (index % 3),
        kind: kinds[index % 4] as DeadLetterKind,
        workflow: index % 2 === 0 ? "even" : "odd",
        id: `id-${index % 5}`,
        name: `n-${index % 6}`,
      }),
    );
    for (const letter of all) await store().addDeadLetter({ ...letter, shard: shard(at) });
    await store().addDeadLetter({ ...outside({ ...at, tenant: unique("tenant-") }), shard: shard(at) });
    const order = (a: DeadLetter, b: DeadLetter) => b.at - a.at || (a.run < b.run ? 1 : a.run > b.run ? -1 : a.effect < b.effect ? 1 : -1);
    const expected = [...all].sort(order);
    assert.deepEqual(await letters(at), expected);
    for (const limit of [1, 7, 100]) {
      const seen: DeadLetter[] = [];
      for (;;) {
        const after = seen.at(-1);
        const page = await store().listDeadLetters(at.tenant, {}, { limit, ...(after !== undefined && { after }) });
        if (page.length === 0) break;
        seen.push(...page);
      }
      assert.deepEqual(seen, expected);
    }
    const filters: readonly DeadLetterFilter[] = [
      { kind: "event" },
      { workflow: "odd" },
      { id: "id-2" },
      { name: "n-3", workflow: "odd" },
      { workflow: "even", kind: "event" },
      { workflow: "none" },
    ];
    for (const filter of filters) {
      const kept = expected.filter((letter) =>
        Object.entries(filter).every(([field, value]) => letter[field as keyof DeadLetter] === value),
      );
      assert.deepEqual(await letters(at, filter), kept);
    }
    const after = expected[10] as DeadLetter;
    assert.deepEqual(
      await store().listDeadLetters(at.tenant, { kind: "event" }, { after, limit: 3 }),
      expected
        .slice(11)
        .filter(({ kind }) => kind === "event")
        .slice(0, 3),
    );
  });

  test("dead letters are dropped by their keys", async () => {
    const at = await scenario(store());
    const [left, ...dropped] = [outside(at), outside(at), outside(at)] as const;
    for (const letter of [left, ...dropped]) await store().addDeadLetter({ ...letter, shard: shard(at) });
    await store().dropDeadLetters([...dropped, { ...left, tenant: unique("tenant-") }, { ...left, effect: "other" }]);
    assert.deepEqual(await letters(at), [left]);
    await store().dropDeadLetters([]);
  });
}
