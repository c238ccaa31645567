import assert from "node:assert/strict";
import { commit, firstTurn, inboxOf, message, next, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

export function inbox({ test, store }: Suite): void {
  test("a posted message is listed with all that it carries until it is dropped", async () => {
    const at = await scenario(store());
    const letter = message(at, unique("run-"), { fact: '{"text":"\\u0000\\n"}' });
    await store().post([letter]);
    const [listed, ...others] = await store().listInbox(at.shards, { limit: 10 });
    assert.ok(listed);
    const { position, ...rest } = listed;
    assert.deepEqual([rest, others], [letter, []]);
    assert.ok(position > 0);
    await store().drop([letter, { ...letter, message: "unknown" }]);
    assert.deepEqual(await inboxOf(at, letter.run), []);
    await store().post([]);
    await store().drop([]);
  });

  test("a message that is posted twice is there once, as it was first", async () => {
    const at = await scenario(store());
    const run = unique("run-");
    const letter = message(at, run, { fact: '"first"' });
    await store().post([letter, { ...letter, fact: '"second"' }]);
    await Promise.all([store().post([{ ...letter, fact: '"third"' }]), store().post([message(at, run)])]);
    const listed = await store().listInbox(at.shards, { limit: 10 });
    assert.deepEqual(
      listed.filter((each) => each.message === letter.message).map(({ fact }) => fact),
      ['"first"'],
    );
    assert.equal(listed.length, 2);
    const same = message(at, unique("run-"), { message: letter.message });
    await store().post([same]);
    assert.deepEqual(await inboxOf(at, same.run), [letter.message], "another run may have a message of the same name");
  });

  test("a turn removes the messages that it consumed, of its own run only", async () => {
    const at = await scenario(store());
    const [mine, other] = await Promise.all([start(at), start(at)]);
    const letters = [message(at, mine.run), message(at, mine.run), message(at, mine.run)];
    const shared = message(at, other.run, { message: letters[0]?.message ?? "" });
    await store().post([...letters, shared]);
    const consumed = letters.slice(0, 2).map((each) => each.message);
    await commit(at, next(at, mine, { consumed: [...consumed, "unknown"] }));
    assert.deepEqual(await inboxOf(at, mine.run), [letters[2]?.message]);
    assert.deepEqual(await inboxOf(at, other.run), [shared.message]);
  });

  test("a refused turn consumes nothing", async () => {
    const at = await scenario(store());
    const first = await start(at);
    const letter = message(at, first.run);
    await store().post([letter]);
    await commit(at, next(at, first, { tail: 9, consumed: [letter.message] }), firstTurn(at));
    assert.deepEqual(await inboxOf(at, first.run), [letter.message]);
  });

  test("sends reach open runs, their own among them, and vanish when the run is closed or unknown", async () => {
    const at = await scenario(store());
    const [sender, open, closed] = await Promise.all([start(at), start(at, { shard: shard(at, 1) }), start(at, { status: "Completed" })]);
    const sends = [
      message(at, open.run, { shard: shard(at, 1) }),
      message(at, closed.run),
      message(at, unique("run-")),
      message(at, sender.run),
      message(at, open.run, { tenant: unique("tenant-") }),
    ];
    await commit(at, next(at, sender, { sends }));
    const listed = await store().listInbox(at.shards, { limit: 10 });
    assert.deepEqual(
      listed.map((each) => each.message),
      [sends[0]?.message, sends[3]?.message],
    );
    assert.equal(listed[0]?.shard, shard(at, 1));
  });

  test("a send to a run that is created in the same flush arrives, one to a run that closes in it does not", async () => {
    const at = await scenario(store());
    const [sender, closing] = await Promise.all([start(at), start(at)]);
    const created = firstTurn(at, { shard: shard(at, 1) });
    const sends = [message(at, created.run, { shard: shard(at, 1) }), message(at, closing.run)];
    await commit(at, next(at, sender, { sends }), created, next(at, closing, { status: "Completed" }));
    assert.deepEqual(await inboxOf(at, created.run), [sends[0]?.message]);
    assert.deepEqual(await inboxOf(at, closing.run), []);
  });

  test("a send that is known already leaves the first as it is", async () => {
    const at = await scenario(store());
    const [sender, target] = await Promise.all([start(at), start(at)]);
    const letter = message(at, target.run, { fact: '"first"' });
    await store().post([letter]);
    await commit(at, next(at, sender, { sends: [{ ...letter, fact: '"second"' }, letter] }));
    const listed = await store().listInbox(at.shards, { limit: 10 });
    assert.deepEqual(
      listed.map(({ fact }) => fact),
      ['"first"'],
    );
  });

  test("a closing turn removes every message of its run, those of the same flush too", async () => {
    const at = await scenario(store());
    const [closing, other] = await Promise.all([start(at), start(at)]);
    await store().post([message(at, closing.run), message(at, closing.run), message(at, other.run)]);
    await commit(at, next(at, closing, { status: "Terminated", sends: [message(at, closing.run)] }));
    assert.deepEqual(await inboxOf(at, closing.run), []);
    assert.equal((await inboxOf(at, other.run)).length, 1);
  });

  test("messages are listed in the order of their posting: children's, then sends, turn by turn", async () => {
    const at = await scenario(store());
    const [left, right, target] = await Promise.all([start(at), start(at), start(at)]);
    const letters = Array.from({ length: 5 }, () => message(at, target.run));
    await store().post(letters.slice(0, 1));
    await commit(at, next(at, left, { sends: letters.slice(1, 3) }), next(at, right, { sends: letters.slice(3, 4) }));
    await store().post(letters.slice(4));
    assert.deepEqual(
      await inboxOf(at, target.run),
      letters.map((each) => each.message),
    );
  });

  test("H096 paging through a group of messages shows each once, in order, whatever the page size", async () => {
    const at = await scenario(store(), 5);
    const letters = Array.from({ length: 400 }, (_, index) => message(at, unique("run-"), { shard: shard(at, (index * index) % 5) }));
    await store().post(letters);
    await store().post([message(await scenario(store()), unique("run-"))]);
    for (const limit of [1, 7, 150, 400, 1_000]) {
      const seen: string[] = [];
      let after: number | undefined;
      for (;;) {
        const page = await store().listInbox(at.shards, { limit, ...(after !== undefined && { after }) });
        if (page.length === 0) break;
        assert.ok(page.length === limit || seen.length + page.length === 400);
        seen.push(...page.map((each) => each.message));
        after = page.at(-1)?.position;
        if (limit === 1 && seen.length === 40) break;
      }
      assert.deepEqual(
        seen,
        letters.slice(0, seen.length).map((each) => each.message),
      );
      assert.ok(seen.length === 400 || limit === 1);
    }
    assert.deepEqual(await store().listInbox([], { limit: 10 }), []);
  });
}
