import assert from "node:assert/strict";
import { StoreUnavailableError } from "../../engine/ports/store.ts";
import { beat, commit, deadLetter, firstTurn, message, publication, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function lifecycle({ test, store }: Suite): void {
  test("a store answers a ping and names what it is", async () => {
    await store().ping();
    assert.match(store().kind, /^[a-z][a-z0-9-]*$/);
    assert.equal(typeof structuredClone(store().strikes).kind, "string", "the sink of strikes crosses threads");
  });

  test("strikes of a run that has none are none", async () => {
    await store().clearStrikes({ tenant: unique("tenant-"), run: unique("run-") });
    const strikes = await store().listStrikes();
    assert.ok(Array.isArray(strikes));
  });
}

/** Runs last: it closes the store. */
export function closing({ test, store }: Suite): void {
  test("H094 closing lets calls under way finish, and later ones reject as unavailable", async () => {
    const at = await scenario(store());
    const turns = Array.from({ length: 20 }, () => firstTurn(at));
    const underWay = turns.map((turn) => commit(at, turn));
    const reading = store().listInstances(at.tenant, {}, { limit: 10 });
    const closed = store().close();
    assert.deepEqual((await Promise.all(underWay)).flat().length, 20);
    await reading;
    await closed;
    await store().close();
    const key = { tenant: at.tenant, run: "r", shard: shard(at) };
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store().ping(),
      () => store().commit({ fence: at.fence, turns: [firstTurn(at)] }),
      () => store().post([message(at, "r")]),
      () => store().drop([message(at, "r")]),
      () => store().getInstance(key),
      () => store().findInstance(at.tenant, "i"),
      () => store().loadInstances([key]),
      () => store().readHistory(key, 1, 1),
      () => store().readLastTurn(key),
      () => store().listInstances(at.tenant, {}, { limit: 1 }),
      () => store().listInbox(at.shards, { limit: 1 }),
      () => store().listTimers(at.shards, 1, 1),
      () => store().listRunnable(at.shards, "busy", { limit: 1 }),
      () => store().listStrikes(),
      () => store().expireStartKeys(0),
      () => store().publish(publication(at)),
      () => store().expirePublications(0),
      () => store().readInbox(key, { limit: 1 }),
      () => store().deleteRuns([key]),
      () => store().listClosedBefore(0, { limit: 1 }),
      () => store().addDeadLetter({ ...key, ...deadLetter(), at: 0, workflow: "w", id: "i" }),
      () => store().listDeadLetters(at.tenant, {}, { limit: 1 }),
      () => store().getDeadLetter({ tenant: at.tenant, run: "r", effect: "e" }),
      () => store().dropDeadLetters([{ ...key, effect: "e" }]),
      () => store().saveHeartbeats([{ ...key, effect: "e", attempt: 1, at: 0, details: "1" }]),
      () => store().readHeartbeats(key),
      () => store().dropHeartbeats([{ ...key, effect: "e" }]),
      () => store().expireHeartbeats(0),
      () => store().saveStepOutcome({ ...key, effect: "e", at: 0, outcome: null }),
      () => store().readStepOutcomes(key),
      () => store().expireStepOutcomes(0),
      () => beat(at, at.owner),
      () => store().leave(at.group, at.owner),
      () => start(at),
    ];
    for (const call of calls) await assert.rejects(call, (error) => error instanceof StoreUnavailableError && /closed/.test(error.message));
  });
}
