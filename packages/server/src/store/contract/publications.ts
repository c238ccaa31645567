import assert from "node:assert/strict";
import { lookBackLimit, type Publication, type PublishOutcome, publicationMessage } from "../../engine/ports/store.ts";
import { child, commit, firstTurn, inboxOf, next, publication, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const paid = (key?: string, after = 0, effect = "1") => ({ effect, name: "paid", ...(key !== undefined && { key }), after });

export function publications({ test, store }: Suite): void {
  test("a publication reaches every run that waits for its name and key, once, with its position", async () => {
    const at = await scenario(store());
    const twice = await start(at, { waits: [paid("a"), paid("a", 0, "2"), paid("b", 0, "3")] });
    const other = await start(at, { shard: shard(at, 1), waits: [paid("a")] });
    await start(at, { waits: [paid("b"), paid(undefined, 0, "2"), { effect: "3", name: "a", key: "paid", after: 0 }] });
    await start({ ...at, tenant: unique("tenant-") }, { waits: [paid("a")] });
    await start(at);
    const event = publication(at, { key: "a", fact: '{"type":"EventReceived","payload":"\\u0000"}' });
    const { known, digest, position, delivered } = await store().publish(event);
    assert.deepEqual([known, digest], [false, "d"]);
    assert.ok(position > 0);
    assert.deepEqual(delivered, [
      { run: twice.run, shard: shard(at) },
      { run: other.run, shard: shard(at, 1) },
    ]);
    const message = publicationMessage(event.id);
    const fact = `{"position":${position},"type":"EventReceived","payload":"\\u0000"}`;
    const listed = await store().listInbox(at.shards, { limit: 10 });
    assert.deepEqual(
      listed.map(({ position: _, ...each }) => each),
      delivered.map((each) => ({ tenant: at.tenant, ...each, message, fact })),
    );
    assert.deepEqual(await store().readInbox({ tenant: at.tenant, run: other.run }, { limit: 10 }), listed.slice(1));
  });

  test("one without a key reaches those who wait without one", async () => {
    const at = await scenario(store());
    const plain = await start(at, { waits: [paid()] });
    await start(at, { waits: [paid("")] });
    await start(at, { waits: [paid("k")] });
    assert.deepEqual((await store().publish(publication(at))).delivered, [{ run: plain.run, shard: shard(at) }]);
  });

  test("a known id changes nothing, and says what it was published with first", async () => {
    const at = await scenario(store());
    const turn = await start(at, { waits: [paid("a")] });
    const event = publication(at, { key: "a" });
    const first = await store().publish(event);
    await commit(at, next(at, turn, { consumed: [publicationMessage(event.id)] }));
    const again = await store().publish({ ...event, digest: "other", key: "b", fact: '{"x":1}' });
    const { position, at: published, reached } = first;
    assert.deepEqual([published, reached], [event.at, 1]);
    assert.deepEqual(again, { known: true, digest: "d", position, at: published, reached, delivered: [] });
    assert.deepEqual(await inboxOf(at, turn.run), []);
    const elsewhere = await store().publish({ ...event, tenant: unique("tenant-") });
    assert.equal(elsewhere.known, false);
    const rivals = await Promise.all(
      Array.from({ length: 5 }, (_, index) => store().publish({ ...event, id: "one", digest: `d${index}` })),
    );
    assert.deepEqual([rivals.filter(({ known }) => !known).length, new Set(rivals.map((each) => each.digest)).size], [1, 1]);
    assert.equal(new Set(rivals.map(({ position }) => position)).size, 1);
  });

  test("a wait with a key looks back, from its position on and oldest first; one without a key does not", async () => {
    const at = await scenario(store());
    const events: (Publication & PublishOutcome)[] = [];
    for (const key of ["a", "a", "b", "a", undefined]) {
      const event = publication(at, key === undefined ? {} : { key });
      events.push({ ...event, ...(await store().publish(event)) });
    }
    const names = (...indexes: number[]) => indexes.map((index) => publicationMessage(events[index]?.id ?? ""));
    const all = firstTurn(at, { waits: [paid("a")] });
    const late = firstTurn(at, { shard: shard(at, 1), waits: [paid("a", events[0]?.position)] });
    const [none, plain] = [firstTurn(at, { waits: [paid("a", events[3]?.position)] }), firstTurn(at, { waits: [paid()] })];
    const stranger = firstTurn(at, { tenant: unique("tenant-"), waits: [paid("a")] });
    const { done, found } = await store().commit({ fence: at.fence, turns: [all, late, none, plain, stranger] });
    assert.deepEqual([done.size, [...found].sort()], [5, [all.run, late.run].sort()]);
    assert.deepEqual(await inboxOf(at, all.run), names(0, 1, 3));
    assert.deepEqual(await inboxOf(at, late.run), names(1, 3));
    assert.deepEqual([...(await inboxOf(at, none.run)), ...(await inboxOf(at, plain.run)), ...(await inboxOf(at, stranger.run))], []);
    const [first] = await store().readInbox(late, { limit: 1 });
    assert.deepEqual([first?.message, first?.shard], [names(1)[0], shard(at, 1)]);
    assert.equal(first?.fact, `{"position":${events[1]?.position},${events[1]?.fact.slice(1)}`);
    const later = await store().commit({ fence: at.fence, turns: [next(at, none, { waits: [paid("b", 0, "2")] }), next(at, all)] });
    assert.deepEqual([...later.found], [none.run]);
    assert.deepEqual(await inboxOf(at, none.run), names(2));
  });

  test("what a wait finds again is there once, and is gone when the same turn consumed it", async () => {
    const at = await scenario(store());
    const event = publication(at, { key: "a" });
    await store().publish(event);
    const turn = await start(at, { waits: [paid("a")] });
    const second = next(at, turn, { waits: [paid("a", 0, "2"), paid("a", 0, "3")] });
    const outcome = await store().commit({ fence: at.fence, turns: [second] });
    assert.deepEqual([...outcome.found], [turn.run]);
    assert.deepEqual(await inboxOf(at, turn.run), [publicationMessage(event.id)]);
    await commit(at, next(at, second, { consumed: [publicationMessage(event.id)], waits: [paid("a", 0, "4")] }));
    assert.deepEqual(await inboxOf(at, turn.run), []);
  });

  test("a wait finds so many publications at most, the oldest", async () => {
    const at = await scenario(store());
    const events = Array.from({ length: lookBackLimit + 5 }, () => publication(at, { key: "a" }));
    for (const event of events) await store().publish(event);
    const turn = await start(at, { waits: [paid("a")] });
    assert.deepEqual(
      await inboxOf(at, turn.run),
      events.slice(0, lookBackLimit).map(({ id }) => publicationMessage(id)),
    );
    const first = await store().readInbox(turn, { limit: 7 });
    const second = await store().readInbox(turn, { after: first.at(-1)?.position ?? 0, limit: 7 });
    assert.deepEqual(
      [...first, ...second].map(({ message }) => message),
      events.slice(0, 14).map(({ id }) => publicationMessage(id)),
    );
  });

  test("one that found so many is told nothing more before it has looked again, and then in order", async () => {
    const at = await scenario(store());
    const events = Array.from({ length: lookBackLimit + 3 }, () => publication(at, { key: "a" }));
    const positions: number[] = [];
    for (const event of events) positions.push((await store().publish(event)).position);
    const turn = await start(at, { waits: [paid("a"), paid("b", 0, "2")] });
    const late = [publication(at, { key: "a" }), publication(at, { key: "b" })] as const;
    assert.deepEqual((await store().publish(late[0])).delivered, []);
    assert.equal((await store().publish(late[1])).delivered.length, 1, "another wait of the run hears at once");
    const consumed = events.slice(0, lookBackLimit).map(({ id }) => publicationMessage(id));
    const again = next(at, turn, { consumed, waits: [paid("a", positions[lookBackLimit - 1])] });
    assert.deepEqual([...(await store().commit({ fence: at.fence, turns: [again] })).found], [turn.run]);
    const rest = [late[1], ...events.slice(lookBackLimit), late[0]].map(({ id }) => publicationMessage(id));
    assert.deepEqual(await inboxOf(at, turn.run), rest);
    const last = publication(at, { key: "a" });
    assert.equal((await store().publish(last)).delivered.length, 1);
    assert.deepEqual(await inboxOf(at, turn.run), [...rest, publicationMessage(last.id)]);
  });

  test("a run waits until its effect is done, moved or the run is closed", async () => {
    const at = await scenario(store());
    const done = await start(at, { waits: [paid("a"), paid("a", 0, "2")] });
    const moved = await start(at, { waits: [paid("a")] });
    const closed = await start(at, { waits: [paid("a"), paid(undefined, 0, "2")] });
    const half = next(at, done, { waitsDone: ["1", "unknown"] });
    await commit(
      at,
      half,
      next(at, moved, { waits: [paid("z"), paid("b")] }),
      next(at, closed, { status: "Completed", waits: [paid("a", 0, "3")] }),
    );
    await start(at, { status: "Completed", waits: [paid("a")] });
    const reached = async (key?: string) => {
      const { delivered } = await store().publish(publication(at, key === undefined ? {} : { key }));
      return delivered.map(({ run }) => run);
    };
    assert.deepEqual([await reached("a"), await reached("b"), await reached("z"), await reached()], [[done.run], [moved.run], [], []]);
    const none = next(at, half, { waitsDone: ["2"] });
    await commit(at, none);
    assert.deepEqual(await reached("a"), []);
    await commit(at, next(at, none, { waits: [paid("a")], waitsDone: ["1"] }));
    assert.deepEqual(await reached("a"), [done.run], "done and begun again in one turn");
  });

  test("a closing turn does not look back, and a refused one neither waits nor looks back", async () => {
    const at = await scenario(store());
    const [closing, stale] = await Promise.all([start(at), start(at)]);
    await store().publish(publication(at, { key: "a" }));
    const turns = [
      next(at, closing, { status: "Completed", waits: [paid("a")] }),
      next(at, stale, { tail: 9, waits: [paid("a")] }),
      firstTurn(at),
    ];
    const { done, found } = await store().commit({ fence: at.fence, turns });
    assert.deepEqual([done.size, found.size], [2, 0]);
    assert.deepEqual([await inboxOf(at, closing.run), await inboxOf(at, stale.run)], [[], []]);
    assert.deepEqual((await store().publish(publication(at, { key: "a" }))).delivered, []);
  });

  test("whoever publishes and whoever begins to wait at the same time do not miss each other", async () => {
    const at = await scenario(store());
    for (let round = 0; round < 5; round += 1) {
      const keys = [unique("key-"), unique("key-")];
      const events = keys.flatMap((key) => Array.from({ length: 6 }, () => publication(at, { key })));
      const turns = Array.from({ length: 12 }, (_, index) => firstTurn(at, { waits: [paid(keys[index % 2]), paid(keys[0], 0, "2")] }));
      await Promise.all(
        events.flatMap((event, index) => {
          const pair = [() => store().publish(event), () => commit(at, turns[index] as (typeof turns)[number])];
          return (index % 3 === 0 ? pair : pair.reverse()).map((call) => call());
        }),
      );
      for (const [index, { run }] of turns.entries()) {
        const expected = events.filter(({ key }) => key === keys[0] || key === keys[index % 2]).map(({ id }) => publicationMessage(id));
        assert.deepEqual([...(await inboxOf(at, run))].sort(), expected.sort());
      }
    }
  });

  test("what a run that continues as new was told and has not applied is the next one's", async () => {
    const at = await scenario(store());
    const turn = await start(at, { waits: [paid("a"), paid(undefined, 0, "2")] });
    const events = [publication(at, { key: "a" }), publication(at), publication(at, { key: "a" })];
    for (const event of events) await store().publish(event);
    await store().post([{ tenant: at.tenant, run: turn.run, shard: shard(at), message: "m", fact: "{}" }]);
    const [first, ...rest] = events.map(({ id }) => publicationMessage(id));
    const ended = await start(at, { waits: [paid("b")] });
    await store().publish(publication(at, { key: "b" }));
    const id = turn.create?.id ?? "";
    const [continuation, other] = [child(at, turn, { id }), child(at, turn)];
    const closing = next(at, turn, { status: "ContinuedAsNew", consumed: [first ?? ""], children: [other, continuation] });
    const { done, found } = await store().commit({ fence: at.fence, turns: [closing] });
    assert.deepEqual([[...done], [...found]], [[turn.run], [turn.run]]);
    await commit(at, next(at, ended, { status: "Completed" }));
    assert.deepEqual(await inboxOf(at, continuation.run), [continuation.start.message, ...rest]);
    assert.deepEqual([...(await inboxOf(at, turn.run)), ...(await inboxOf(at, ended.run))], []);
    assert.deepEqual(await inboxOf(at, other.run), [other.start.message]);
    const handed = await store().readInbox({ tenant: at.tenant, run: continuation.run }, { limit: 9 });
    assert.deepEqual([...new Set(handed.map((each) => each.shard))], [continuation.shard]);
  });

  test("publications expire, and their ids with them", async () => {
    const at = await scenario(store());
    const [old, young] = [publication(at, { key: "a", at: 10 }), publication(at, { key: "a", at: 20 })];
    for (const event of [young, old]) await store().publish(event);
    for (let count = 0; count < 1_100; count += 100) {
      await Promise.all(Array.from({ length: 100 }, () => store().publish(publication(at, { at: 5 }))));
    }
    await store().expirePublications(20);
    const turn = await start(at, { waits: [paid("a")] });
    assert.deepEqual(await inboxOf(at, turn.run), [publicationMessage(young.id)]);
    assert.equal((await store().publish(young)).known, true);
    assert.equal((await store().publish(old)).known, false);
  });

  test("messages of one run are read in the order of their posting", async () => {
    const at = await scenario(store());
    const turn = await start(at, { waits: [paid("a")] });
    const events = Array.from({ length: 3 }, () => publication(at, { key: "a" }));
    for (const event of [...events].reverse()) await store().publish(event);
    await start(at, { waits: [paid("a")] });
    const read = await store().readInbox(turn, { limit: 10 });
    assert.deepEqual(
      read.map(({ message }) => message),
      events.map(({ id }) => publicationMessage(id)).reverse(),
    );
    assert.deepEqual(await store().listInbox(at.shards, { limit: 3 }), read);
    assert.deepEqual(await store().readInbox({ tenant: unique("tenant-"), run: turn.run }, { limit: 10 }), []);
    assert.deepEqual(await store().readInbox({ tenant: at.tenant, run: unique("run-") }, { limit: 10 }), []);
  });
}
