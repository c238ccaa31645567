/** What attempts leave in the store outside of turns: heartbeats, and outcomes of transactional steps. */
import assert from "node:assert/strict";
import type { Heartbeat, StepOutcome } from "../../engine/ports/store.ts";
import { commit, next, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function activityRecords({ test, store }: Suite): void {
  test("the heartbeat of a later attempt, or the same at a later time, takes the place of what is there; an older one does not", async () => {
    const at = await scenario(store());
    const turn = await start(at);
    const beat = (details: Partial<Heartbeat>): Heartbeat => ({
      tenant: at.tenant,
      run: turn.run,
      effect: "1",
      attempt: 2,
      at: 1_764_400_000_123,
      details: '"\\u0000"',
      ...details,
    });
    await store().saveHeartbeats([beat({})]);
    assert.deepEqual(await store().readHeartbeats(turn), [beat({})]);
    await store().saveHeartbeats([
      beat({ attempt: 1, at: 1_764_400_009_999, details: "1" }),
      beat({ at: 5, details: "2" }),
      beat({ details: "3" }),
    ]);
    assert.deepEqual(await store().readHeartbeats(turn), [beat({})]);
    await store().saveHeartbeats([beat({ at: 1_764_400_000_124, details: "4" })]);
    assert.equal((await store().readHeartbeats(turn))[0]?.details, "4");
    await store().saveHeartbeats([beat({ attempt: 4, at: 1, details: "6" }), beat({ attempt: 3, details: "5" })]);
    assert.deepEqual(await store().readHeartbeats(turn), [beat({ attempt: 4, at: 1, details: "6" })]);
    await store().saveHeartbeats([]);
  });

  test("heartbeats belong to open runs, are read by effect, dropped and expire", async () => {
    const at = await scenario(store());
    const [open, closed] = [await start(at), await start(at, { status: "Completed" })];
    const beat = (run: string, effect: string, time = 10): Heartbeat => ({
      tenant: at.tenant,
      run,
      effect,
      attempt: 1,
      at: time,
      details: effect,
    });
    await store().saveHeartbeats([
      beat(open.run, "b"),
      beat(closed.run, "a"),
      beat(unique("run-"), "a"),
      beat(open.run, "a", 20),
      beat(open.run, "c"),
    ]);
    assert.deepEqual(
      (await store().readHeartbeats(open)).map(({ effect }) => effect),
      ["a", "b", "c"],
    );
    assert.deepEqual(await store().readHeartbeats(closed), []);
    assert.deepEqual(await store().readHeartbeats({ tenant: unique("tenant-"), run: open.run }), []);
    await store().dropHeartbeats([beat(open.run, "b"), beat(unique("run-"), "a")]);
    await store().dropHeartbeats([]);
    await store().expireHeartbeats(20);
    assert.deepEqual(await store().readHeartbeats(open), [beat(open.run, "a", 20)]);
    await assert.rejects(store().saveHeartbeats([{ ...beat(open.run, "x"), details: "\ud800" }]), { code: "PAYLOAD_UNSERIALIZABLE" });
  });

  test("many who save heartbeats of the same effects at once all come through", async () => {
    const at = await scenario(store());
    const turn = await start(at);
    const beats = Array.from({ length: 20 }, (_, index) => ({
      tenant: at.tenant,
      run: turn.run,
      effect: `e-${index}`,
      attempt: 1,
      at: index,
      details: "1",
    }));
    const rounds = Array.from({ length: 8 }, (_, round) => beats.map((beat) => ({ ...beat, at: round })));
    await Promise.all(rounds.map((round, index) => store().saveHeartbeats(index % 2 === 0 ? round : [...round].reverse())));
    const read = await store().readHeartbeats(turn);
    assert.deepEqual([read.length, new Set(read.map((beat) => beat.at))], [20, new Set([7])]);
  });

  test("the first outcome of a step wins, a tombstone too, and everybody learns which it was", async () => {
    const at = await scenario(store());
    const where = { shard: shard(at) };
    const step: StepOutcome = { tenant: at.tenant, run: unique("run-"), effect: "1", at: 1_764_400_000_123, outcome: '"\\u0000"' };
    assert.deepEqual(await store().saveStepOutcome({ ...step, ...where }), { won: true, outcome: step.outcome });
    assert.deepEqual(await store().saveStepOutcome({ ...step, ...where, outcome: null }), { won: false, outcome: step.outcome });
    const grave = { ...step, effect: "0", outcome: null };
    assert.deepEqual(await store().saveStepOutcome({ ...grave, ...where }), { won: true, outcome: null });
    assert.deepEqual(await store().saveStepOutcome({ ...grave, ...where, outcome: "1" }), { won: false, outcome: null });
    assert.deepEqual(await store().readStepOutcomes(step), [grave, step]);
    assert.deepEqual(await store().readStepOutcomes({ tenant: unique("tenant-"), run: step.run }), []);
    const rivals = Array.from({ length: 5 }, (_, index) => ({ ...step, effect: "2", outcome: `${index}` }));
    const answers = await Promise.all(rivals.map((each) => store().saveStepOutcome({ ...each, ...where })));
    assert.deepEqual([answers.filter(({ won }) => won).length, new Set(answers.map(({ outcome }) => outcome)).size], [1, 1]);
    await assert.rejects(store().saveStepOutcome({ ...step, ...where, outcome: "\u001f" }), { code: "PAYLOAD_UNSERIALIZABLE" });
  });

  test("outcomes of closed runs and of runs that are gone expire, those of open runs stay, however many there are", async () => {
    const at = await scenario(store());
    const [open, closed] = [await start(at), await start(at)];
    const gone = { run: unique("run-") };
    const save = async (run: string, effect: string, time: number) =>
      store().saveStepOutcome({ tenant: at.tenant, run, shard: shard(at), effect, at: time, outcome: "1" });
    for (const { run } of [open, closed, gone]) for (const time of [10, 20]) await save(run, `e-${time}`, time);
    await commit(at, next(at, closed, { status: "Completed" }));
    // More than one statement looks at, all but a few of them at one time.
    for (let effect = 0; effect < 1_400; effect += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, each) => save(open.run, `m-${effect + each}`, 11)));
    }
    for (let effect = 0; effect < 50; effect += 1) await save(gone.run, `z-${effect}`, 12);
    await store().expireStepOutcomes(20);
    const effects = async (run: string) => (await store().readStepOutcomes({ tenant: at.tenant, run })).map(({ effect }) => effect);
    assert.deepEqual([await effects(closed.run), await effects(gone.run)], [["e-20"], ["e-20"]]);
    assert.equal((await effects(open.run)).length, 1_402);
  });
}
