import assert from "node:assert/strict";
import { type AdmissionAsk, admissionFacts, admissionMessage, supersededMessage } from "../../engine/ports/admissions.ts";
import { commit, firstTurn, inboxOf, instance, next, type Scenario, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function admissions({ test, store }: Suite): void {
  /** Several databases count no runs together. */
  const limited = (title: string, body: () => Promise<void>) =>
    test(title, async () => {
      if (store().databases === undefined) await body();
    });
  const limit = (at: Scenario, details: Partial<AdmissionAsk> = {}): AdmissionAsk => ({
    tenant: at.tenant,
    name: unique("limit-"),
    capacity: 1,
    onLimit: "queue",
    ...details,
  });
  const asking = (at: Scenario, asked: AdmissionAsk, run: string): AdmissionAsk => ({ ...asked, run: { run, shard: shard(at) } });
  const told = async (...asks: readonly AdmissionAsk[]) => (await store().admit(asks)).map(({ run }) => run);
  const close = (at: Scenario, turn: Awaited<ReturnType<typeof start>>) => commit(at, next(at, turn, { status: "Completed" }));

  limited("runs are admitted in the order in which they were asked for, up to the capacity, and are told by their inbox", async () => {
    const at = await scenario(store());
    const asked = limit(at, { capacity: 2 });
    const runs = [await start(at), await start(at), await start(at), await start(at)];
    const [a, b, c, d] = runs.map(({ run }) => run) as [string, string, string, string];
    assert.deepEqual(await told(asking(at, asked, a), asking(at, asked, b), asking(at, asked, c)), [a, b]);
    assert.deepEqual(await told(asking(at, asked, d)), []);
    assert.deepEqual(await inboxOf(at, a), [admissionMessage]);
    assert.deepEqual(await inboxOf(at, c), []);
    const [message] = await store().readInbox({ tenant: at.tenant, run: b }, { limit: 10 });
    assert.deepEqual([message?.fact, message?.shard], [admissionFacts.admitted, shard(at)]);
    await close(at, runs[1] as (typeof runs)[number]);
    assert.deepEqual(await told(asked), [c]);
    assert.deepEqual(await told(asked), []);
  });

  limited("what was admitted is told again to whoever asks for it, and takes no second place", async () => {
    const at = await scenario(store());
    const asked = limit(at, { capacity: 2 });
    const [a, b] = [await start(at), await start(at)];
    assert.deepEqual(await told(asking(at, asked, a.run)), [a.run]);
    assert.deepEqual(await told(asking(at, asked, a.run)), [a.run]);
    assert.deepEqual(await inboxOf(at, a.run), [admissionMessage]);
    assert.deepEqual(await told(asking(at, asked, b.run)), [b.run]);
  });

  limited("H118 the room of a run that closed, or is gone, is free, whatever was counted", async () => {
    const at = await scenario(store());
    const asked = limit(at);
    const gone = unique("gone-");
    assert.deepEqual(await told(asking(at, asked, gone)), [], "there is no such run");
    const first = await start(at);
    assert.deepEqual(await told(asking(at, asked, first.run)), [first.run]);
    await close(at, first);
    await store().deleteRuns([{ tenant: at.tenant, run: first.run }]);
    const second = await start(at);
    assert.deepEqual(await told(asking(at, asked, second.run)), [second.run]);
  });

  limited("limits of other names and tenants are others", async () => {
    const [at, other] = [await scenario(store()), await scenario(store())];
    const asked = limit(at);
    const runs = [await start(at), await start(at)];
    const [a, b] = runs.map(({ run }) => run) as [string, string];
    const foreign = await start(other);
    assert.deepEqual(
      await told(
        asking(at, asked, a),
        asking(at, { ...asked, name: unique("limit-") }, b),
        asking(other, { ...asked, tenant: other.tenant }, foreign.run),
      ).then((all) => all.sort()),
      [a, b, foreign.run].sort(),
    );
  });

  limited("what is not to wait is told so, and leaves no trace", async () => {
    const at = await scenario(store());
    const asked = limit(at, { onLimit: "cancelNewest" });
    const [a, b] = [await start(at), await start(at)];
    assert.deepEqual(await told(asking(at, asked, a.run), asking(at, asked, b.run)), [a.run, b.run]);
    const [message] = await store().readInbox({ tenant: at.tenant, run: b.run }, { limit: 10 });
    assert.equal(message?.fact, admissionFacts.refused);
    await close(at, a);
    assert.deepEqual(await told(asked), []);
  });

  limited("the longest at work is told to make room, once for each that waits", async () => {
    const at = await scenario(store());
    const asked = limit(at, { capacity: 2, onLimit: "cancelInProgress" });
    const runs = [await start(at), await start(at), await start(at)];
    const [a, b, c] = runs.map(({ run }) => run) as [string, string, string];
    await told(asking(at, asked, a), asking(at, asked, b));
    assert.deepEqual(await told(asking(at, asked, c)), [a]);
    assert.deepEqual(await told(asked), [], "it has been told");
    assert.deepEqual(await inboxOf(at, a), [admissionMessage, supersededMessage]);
    assert.deepEqual(await inboxOf(at, b), [admissionMessage]);
    await close(at, runs[0] as (typeof runs)[number]);
    assert.deepEqual(await told(asked), [c]);
    assert.deepEqual(await inboxOf(at, b), [admissionMessage]);
  });

  limited("many who ask at once admit no more than may be at work", async () => {
    const at = await scenario(store());
    const asked = limit(at, { capacity: 3 });
    const runs = await Promise.all(Array.from({ length: 8 }, () => start(at)));
    const admitted = await Promise.all(runs.map(({ run }) => told(asking(at, asked, run))));
    assert.equal(new Set(admitted.flat()).size, 3);
  });

  test("a start key is freed only if it is that of the run", async () => {
    const at = await scenario(store());
    const workflow = unique("workflow-");
    const made = await start(at, { create: instance({ workflow, startKey: { key: "k", digest: "d" } }) });
    const second = firstTurn(at, { create: instance({ workflow, startKey: { key: "k", digest: "d" } }) });
    await store().dropStartKey(at.tenant, workflow, "k", "another");
    assert.deepEqual(await commit(at, second), []);
    await store().dropStartKey(at.tenant, workflow, "k", made.run);
    assert.equal(await store().findStartKey(at.tenant, workflow, "k"), undefined);
    assert.deepEqual(await commit(at, second), [second.run]);
  });
}
