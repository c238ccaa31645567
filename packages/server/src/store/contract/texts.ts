import assert from "node:assert/strict";
import * as fc from "fast-check";
import { type InboxMessage, publicationMessage, type TurnWrite } from "../../engine/ports/store.ts";
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
  scenario,
  start,
  timersOf,
  unique,
} from "./scenario.ts";
import type { Suite } from "./suite.ts";

/** Every UTF-16 unit may occur, halves of surrogate pairs and control characters too. */
const anyText = fc.string({ unit: fc.nat({ max: 0xffff }).map((unit) => String.fromCharCode(unit)), maxLength: 30 });
const nastyText = fc.oneof(
  anyText,
  fc.constantFrom("\u0000", "a\u0000b", "\u001f", "\u001a0000", "\ud800", "x\udc00y", "\uf8ff0041", "{}", '"\\', "\u0085\u2028", "😀", ""),
);

export function texts({ test, store, runs }: Suite): void {
  test("H077 every JSON text comes back as it was, in events, facts and attributes", async () => {
    const at = await scenario(store());
    await fc.assert(
      fc.asyncProperty(nastyText, nastyText, async (value, name) => {
        const json = JSON.stringify({ [name]: value, list: [value] });
        const attributes = { [`${name}!`]: value, list: [value, "x"] };
        const target = await start(at, { events: json, attributes });
        const letter = message(at, target.run, { fact: json });
        await store().post([letter]);
        await commit(at, next(at, await start(at), { sends: [message(at, target.run, { fact: json })] }));
        const [loaded] = await store().loadInstances([target]);
        assert.deepEqual([loaded?.turns[0]?.events, loaded?.row.attributes], [json, attributes]);
        const letters = await store().listInbox(at.shards, { limit: 10_000 });
        const facts = letters.filter(({ run }) => run === target.run).map(({ fact }) => fact);
        assert.deepEqual(facts, [json, json]);
        const found = await store().listInstances(at.tenant, { attributes: { [`${name}!`]: value } }, { limit: 1_000 });
        assert.ok(found.some(({ run }) => run === target.run));
        assert.ok(found.every(({ attributes: each }) => each[`${name}!`] === value));
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });

  test("H078 a turn with a text that cannot be stored fails alone and says why; the rest of its flush is done", async () => {
    const at = await scenario(store());
    const target = await start(at);
    const bad = ["a\u0000b", "a\u001fb", "a\ud800b"];
    for (const text of bad) {
      const base = firstTurn(at);
      const poison: readonly Partial<TurnWrite>[] = [
        { create: instance({ id: text }) },
        { create: instance({ workflow: text }) },
        { create: instance({ startKey: { key: text, digest: "d" } }) },
        { events: `["${text}"]` },
        { nonce: text },
        { node: text },
        { timers: [{ effect: text, due: 1 }] },
        { timersDone: [text] },
        { consumed: [text] },
        { waits: [{ effect: text, name: "n", after: 0 }] },
        { waits: [{ effect: "1", name: text, after: 0 }] },
        { waits: [{ effect: "1", name: "n", key: text, after: 0 }] },
        { waitsDone: [text] },
        { deadLetters: [deadLetter({ effect: text })] },
        { deadLetters: [deadLetter({ name: text })] },
        { deadLetters: [deadLetter({ failure: text })] },
        { deadLettersDone: [text] },
        { children: [child(at, base, { id: text })] },
        { sends: [message(at, target.run, { message: text })] },
        { sends: [message(at, target.run, { fact: text })] },
      ];
      const turns = poison.flatMap((details) => [firstTurn(at), firstTurn(at, details)]);
      const { done, failed } = await store().commit({ fence: at.fence, turns });
      assert.deepEqual(
        turns.map(({ run }) => [done.has(run), failed.has(run)]),
        turns.map((_, index) => [index % 2 === 0, index % 2 === 1]),
      );
      for (const error of failed.values()) assert.match(error.message, /cannot be stored/);
      assert.deepEqual(await inboxOf(at, target.run), []);
    }
  });

  test("H078 a message with a text that cannot be stored is refused for good", async () => {
    const at = await scenario(store());
    const good = message(at, unique("run-"));
    const details: readonly Partial<InboxMessage>[] = [{ message: "a\u0000" }, { fact: "\ud800" }, { run: "\u001f" }];
    for (const each of details) await assert.rejects(store().post([message(at, good.run, each)]), { code: "PAYLOAD_UNSERIALIZABLE" });
  });

  test("a text that cannot be stored is found nowhere", async () => {
    const at = await scenario(store());
    for (const text of ["a\u0000b", "\u001f", "\ud800"]) {
      assert.equal(await store().findInstance(at.tenant, text), undefined);
      assert.equal(await store().findInstance(text, text), undefined);
      assert.equal(await store().getInstance({ tenant: at.tenant, run: text }), undefined);
      assert.equal(await store().findStartKey(at.tenant, text, text), undefined);
      assert.deepEqual(await store().loadInstances([{ tenant: at.tenant, run: text }]), []);
      assert.deepEqual(await store().listInstances(at.tenant, { workflow: text }, { limit: 1 }), []);
      await store().drop([{ tenant: at.tenant, run: text, message: text }]);
      const key = { tenant: at.tenant, run: text, effect: text };
      assert.deepEqual(await store().readInbox(key, { limit: 1 }), []);
      assert.deepEqual(await store().readHeartbeats(key), []);
      assert.deepEqual(await store().readStepOutcomes(key), []);
      assert.equal(await store().getDeadLetter({ tenant: at.tenant, run: text, effect: text }), undefined);
      assert.deepEqual(await store().listDeadLetters(at.tenant, { name: text }, { limit: 1 }), []);
      assert.equal(await store().deleteRuns([key]), 0);
      await store().dropDeadLetters([key]);
      await store().dropHeartbeats([key]);
      await assert.rejects(store().publish(publication(at, { id: text })), { code: "PAYLOAD_UNSERIALIZABLE" });
      await assert.rejects(store().publish(publication(at, { key: text })), { code: "PAYLOAD_UNSERIALIZABLE" });
    }
  });

  test("H082 ids, keys, names and values as long as the limits allow are stored, found and searched", async () => {
    const at = await scenario(store());
    const tenant = unique("😀".repeat(240));
    const here = { ...at, tenant };
    // Incompressible, so that no database saves itself by compressing.
    const long = (seed: number): string => {
      let state = seed * 2_654_435_761;
      return Array.from({ length: 255 }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return String.fromCodePoint(0x1_0000 + (state % 0xf_0000));
      }).join("");
    };
    const [id, key, effect, name, value] = [1, 2, 3, 4, 5].map(long) as [string, string, string, string, string];
    const big = "x".repeat(10_000) + long(6);
    const turn = await start(here, {
      create: instance({ id, workflow: long(7), startKey: { key, digest: long(8) }, correlationId: long(9) }),
      timers: [{ effect, due: 1 }],
      attributes: { [name]: value, big },
    });
    const event = publication(here, { id: long(11), name: long(12), key: long(13), digest: long(14) });
    await store().publish(event);
    const step = { effect, name: event.name, key: long(13), after: 0 };
    const waiting = await start(here, { waits: [step], deadLetters: [deadLetter({ effect, name: long(15) })] });
    assert.deepEqual(await inboxOf(here, waiting.run), [publicationMessage(event.id)]);
    assert.equal((await store().getDeadLetter({ tenant: tenant, run: waiting.run, effect: effect }))?.name, long(15));
    await store().saveHeartbeats([{ tenant, run: waiting.run, effect, attempt: 1, at: 1, details: big }]);
    await store().saveStepOutcome({ tenant, run: waiting.run, shard: waiting.shard, effect, at: 1, outcome: big });
    assert.equal((await store().readStepOutcomes(waiting))[0]?.outcome, big);
    const letter = message(here, turn.run, { message: long(10) });
    await store().post([letter]);
    assert.equal((await store().findInstance(tenant, id))?.run, turn.run);
    assert.equal((await store().findStartKey(tenant, long(7), key))?.run, turn.run);
    assert.deepEqual(await timersOf(here, turn.run), [[effect, 1]]);
    assert.deepEqual(await inboxOf(here, turn.run), [letter.message]);
    assert.equal((await store().listInstances(tenant, { attributes: { [name]: value } }, { limit: 2 })).length, 1);
    assert.equal((await store().listInstances(tenant, { attributes: { big } }, { limit: 2 })).length, 1);
    assert.equal((await store().listInstances(tenant, { workflow: long(7) }, { limit: 2 })).length, 1);
    await commit(here, next(here, turn, { status: "Completed", consumed: [letter.message] }));
    assert.equal((await store().findInstance(tenant, id))?.status, "Completed");
  });

  test("H079 a turn of eight megabytes is stored like any other", async () => {
    const at = await scenario(store());
    const events = JSON.stringify(["x".repeat(8 << 20)]);
    const [large, small] = [firstTurn(at, { events }), firstTurn(at)];
    assert.deepEqual(await commit(at, large, small), [large.run, small.run]);
    assert.equal((await store().readLastTurn(large))?.events, events);
  });
}
