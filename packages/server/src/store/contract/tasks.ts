import assert from "node:assert/strict";
import type { ClaimedTask, TaskClaim, TaskWrite } from "../../engine/ports/tasks.ts";
import { commit, firstTurn, inboxOf, laterTurn, next, scenario, shard, start, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const hour = 3_600_000;

export function tasks({ test, store }: Suite): void {
  const task = (details: Partial<TaskWrite> = {}): TaskWrite => ({
    effect: unique("effect-"),
    queue: "q",
    name: "render",
    attempt: 1,
    losses: 0,
    priority: 2,
    requires: [],
    input: '["\\u0000"]',
    about: '{"a":1}',
    ...details,
  });
  type Details = Partial<TaskClaim> & { readonly worker?: string };
  const claim = (queue: string, count: number, { worker = "w", ...details }: Details = {}): Promise<readonly ClaimedTask[]> =>
    store().tasks.claim({
      queue,
      labels: [],
      places: Array.from({ length: count }, () => ({ token: unique("token-"), worker })),
      lease: hour,
      afterTenant: "",
      ...details,
    });
  const settle = async (token: string, fact = '{"type":"ActivityCompleted","output":"1"}', digest = "d") =>
    (await store().tasks.settle([{ token, digest, fact }]))[0];
  /** Milliseconds, by the clock that tasks go by. */
  const storeTime = async (): Promise<number> => {
    const id = unique("worker-");
    await store().tasks.saveWorkers([{ id, about: "{}", takes: [], within: 0 }]);
    const [worker] = (await store().tasks.listWorkers({ limit: 10_000 })).filter((each) => each.id === id);
    return worker?.seenAt ?? 0;
  };
  /** Resolves with a later time than it is now. */
  const timePasses = async (): Promise<number> => {
    const now = await storeTime();
    for (;;) {
      const later = await storeTime();
      if (later > now) return later;
    }
  };
  const effects = (claimed: readonly { readonly effect: string }[]) => claimed.map(({ effect }) => effect);

  test("a task is claimed as its turn wrote it, once, and never more than asked for", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const written = [1, 2, 3].map((n) => task({ queue, effect: String(n), attempt: n }));
    const turn = await start(at, { tasks: written });
    const first = await claim(queue, 2);
    assert.deepEqual(effects(first), ["1", "2"]);
    const [one] = first;
    assert.ok(one !== undefined);
    const { token, ...rest } = one;
    assert.ok(token.startsWith("token-"));
    assert.deepEqual(rest, {
      tenant: at.tenant,
      run: turn.run,
      effect: "1",
      worker: "w",
      queue,
      name: "render",
      attempt: 1,
      input: '["\\u0000"]',
      about: '{"a":1}',
    });
    assert.deepEqual(effects(await claim(queue, 5)), ["3"]);
    assert.deepEqual(await claim(queue, 5), []);
    assert.deepEqual(await claim(unique("queue-"), 5), []);
    assert.deepEqual(await claim(queue, 0), []);
  });

  test("a refused turn writes and removes no task; a later one of the same effect takes the place of the former", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const turn = await start(at, { tasks: [task({ queue, effect: "1" })] });
    await commit(at, next(at, turn, { tail: 9, tasks: [task({ queue, effect: "2" })], tasksDone: ["1"] }));
    assert.equal((await claim(queue, 5)).length, 1);
    const second = next(at, turn, { tasks: [task({ queue, effect: "1", attempt: 2, details: '["told"]' })] });
    assert.equal((await commit(at, second, firstTurn(at))).length, 2);
    const [again] = await claim(queue, 5);
    assert.equal(again?.attempt, 2);
    assert.equal(again?.details, '["told"]');
    await commit(at, next(at, second, { tasksDone: ["1", "unknown"] }));
    assert.deepEqual(await store().tasks.renew([{ token: again?.token ?? "", lease: hour, beat: false }]), new Set());
  });

  test("of a flush only the tasks of admitted turns are written", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const good = firstTurn(at, { tasks: [task({ queue, effect: "good" })] });
    const bad = laterTurn(at, { run: unique("run-"), tail: 4, tasks: [task({ queue, effect: "bad" })] });
    const other = firstTurn(at, { tasks: [task({ queue, effect: "other" })] });
    assert.equal((await commit(at, good, bad, other)).length, 2);
    assert.deepEqual(effects(await claim(queue, 5)).sort(), ["good", "other"]);
  });

  test("tasks come by priority, then in the order in which they were asked for", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const priorities = [2, 0, 3, 2, 0, 1];
    await start(at, { tasks: priorities.map((priority, n) => task({ queue, priority, effect: `${n}` })) });
    assert.deepEqual(effects(await claim(queue, 4)), ["1", "4", "5", "0"]);
    assert.deepEqual(effects(await claim(queue, 4)), ["3", "2"]);
  });

  test("H120 a tenant's backlog does not keep another tenant waiting", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const [a, b, c] = [`${at.tenant}-a`, `${at.tenant}-b`, `${at.tenant}-c`];
    const of = (tenant: string, count: number) =>
      firstTurn(at, { tenant, tasks: Array.from({ length: count }, (_, n) => task({ queue, effect: `${n}` })) });
    await commit(at, of(a, 30), of(b, 2), of(c, 1));
    const tenants = (claimed: readonly ClaimedTask[]) => claimed.map(({ tenant }) => tenant.slice(-1)).join("");
    assert.equal(tenants(await claim(queue, 3)), "abc");
    assert.equal(tenants(await claim(queue, 1, { afterTenant: a })), "b");
    assert.equal(tenants(await claim(queue, 3, { afterTenant: b })), "aaa");
    assert.equal((await claim(queue, 100)).length, 26);
  });

  test("a worker gets only what it can do, and has the labels for", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    await start(at, {
      tasks: [
        task({ queue, effect: "1", name: "mail" }),
        task({ queue, effect: "2", requires: ["gpu", "region:eu"] }),
        task({ queue, effect: "3" }),
      ],
    });
    assert.deepEqual(effects(await claim(queue, 5, { activities: ["render"], labels: ["gpu"] })), ["3"]);
    assert.deepEqual(effects(await claim(queue, 5, { activities: [] })), []);
    assert.deepEqual(effects(await claim(queue, 5, { activities: ["render", "mail"], labels: ["gpu", "x", "region:eu"] })), ["1", "2"]);
  });

  test("a settled task lies in the inbox of its run, with what it told; said again it is known, said otherwise refused", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const turn = await start(at, { tasks: [task({ queue, effect: 'a"b', attempt: 3 })] });
    const [claimed] = await claim(queue, 1);
    const token = claimed?.token ?? "";
    await store().tasks.renew([{ token, lease: hour, beat: true, details: '["\\u0000",1]' }]);
    const outcome = await settle(token);
    const fact = '{"effect":"a\\"b","attempt":3,"heartbeat":"[\\"\\\\u0000\\",1]","type":"ActivityCompleted","output":"1"}';
    const message = { tenant: at.tenant, run: turn.run, shard: shard(at), message: 'outcome:a"b:3', fact };
    assert.deepEqual(outcome, { kind: "settled", message });
    assert.deepEqual(await inboxOf(at, turn.run), [message.message]);
    assert.equal(
      (await store().tasks.depths()).find((depth) => depth.queue === queue),
      undefined,
    );
    assert.deepEqual(await settle(token), { kind: "known" });
    assert.deepEqual(await settle(token, '{"type":"ActivityFailed"}', "e"), { kind: "refused" });
    assert.deepEqual(await claim(queue, 1), []);
    assert.deepEqual((await store().tasks.sweep(at.shards, 10)).overdue, []);
    assert.deepEqual(await inboxOf(at, turn.run), [message.message]);
  });

  test("the tasks of a run are told, those that wait and those that somebody has, until they are settled", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const asked = [task({ queue, effect: "1" }), task({ queue, effect: "2", requires: ["eu", "gpu"] })];
    const turn = await start(at, { tasks: asked });
    await start(at, { tasks: [task({ queue: unique("queue-"), effect: "1" })] });
    const key = { tenant: at.tenant, run: turn.run };
    const second = { effect: "2", queue, requires: ["eu", "gpu"] };
    assert.deepEqual(await store().tasks.ofRun(key), [{ effect: "1", queue, requires: [] }, second]);
    const [claimed] = await claim(queue, 1, { worker: "mine" });
    assert.deepEqual(await store().tasks.ofRun(key), [{ effect: "1", queue, requires: [], worker: "mine" }, second]);
    await settle(claimed?.token ?? "");
    assert.deepEqual(await store().tasks.ofRun(key), [second]);
    assert.deepEqual(await store().tasks.ofRun({ ...key, run: "\0" }), []);
  });

  test("H063 a token that was never given, was handed back or whose lease ended settles and prolongs nothing", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const turn = await start(at, { tasks: [task({ queue, effect: "1", losses: 1 })] });
    assert.deepEqual(await settle("unknown"), { kind: "refused" });
    const [first] = await claim(queue, 1);
    assert.deepEqual(await store().tasks.release([first?.token ?? "", "unknown"]), [{ token: first?.token, queue }]);
    assert.deepEqual(await settle(first?.token ?? ""), { kind: "refused" });
    const [second] = await claim(queue, 1, { lease: 0, worker: "slow" });
    const key = { tenant: at.tenant, run: turn.run, effect: "1" };
    const { overdue } = await store().tasks.sweep(at.shards, 10);
    assert.deepEqual(overdue, [
      { ...key, shard: shard(at), name: "render", attempt: 1, losses: 1, about: '{"a":1}', worker: "slow", end: "lost" },
    ]);
    assert.deepEqual(await settle(second?.token ?? ""), { kind: "refused" });
    assert.deepEqual(await store().tasks.renew([{ token: second?.token ?? "", lease: hour, beat: false }]), new Set());
    assert.deepEqual(await claim(queue, 1), [], "one that was lost waits for its run to say so");
    assert.deepEqual(await inboxOf(at, turn.run), []);
    await commit(at, next(at, turn, { tasks: [task({ queue, effect: "1", losses: 2 })] }));
    const [third] = await claim(queue, 1);
    assert.equal((await settle(third?.token ?? ""))?.kind, "settled");
  });

  test("a time limit that has passed ends a task, the first one that did; until a turn has seen to it, it is told once in a while", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const limits: readonly [string, Partial<TaskWrite>][] = [
      ["heartbeat", { beatWithin: 0, runWithin: hour }],
      ["lost", { runWithin: hour, closeWithin: hour }],
      ["scheduleToClose", { closeWithin: 0 }],
      ["startToClose", { runWithin: 0, beatWithin: hour }],
    ];
    await start(at, { tasks: limits.map(([effect, details]) => task({ queue, effect, ...details })) });
    assert.equal((await claim(queue, 4, { lease: hour })).length, 4);
    const ends = async (shards = at.shards) => (await store().tasks.sweep(shards, 10)).overdue.map(({ effect, end }) => [effect, end]);
    assert.deepEqual(await ends([shard(at, 1)]), []);
    assert.deepEqual((await ends()).sort(), [
      ["heartbeat", "heartbeat"],
      ["scheduleToClose", "scheduleToClose"],
      ["startToClose", "startToClose"],
    ]);
    assert.deepEqual(await ends(), []);
    const { nextIn } = await store().tasks.sweep(at.shards, 10);
    assert.ok(nextIn !== undefined && nextIn > 1_000 && nextIn <= 10_000, String(nextIn));
  });

  test("what waits too long ends without having begun", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const waiting = [
      task({ queue, effect: "1", startWithin: 0 }),
      task({ queue, effect: "2", closeWithin: 0 }),
      task({ queue, effect: "3", startWithin: 0, closeWithin: hour }),
      task({ queue, effect: "4", startWithin: hour }),
    ];
    await start(at, { tasks: waiting });
    const { overdue } = await store().tasks.sweep(at.shards, 10);
    const ends = overdue.map(({ effect, end, worker }) => [effect, end, worker]).sort();
    assert.deepEqual(ends, [
      ["1", "scheduleToStart", ""],
      ["2", "scheduleToClose", ""],
      ["3", "scheduleToStart", ""],
    ]);
    assert.deepEqual(effects(await claim(queue, 5)), ["4"]);
  });

  test("a task that waits again keeps its place and what was told", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    await start(at, { tasks: [task({ queue, effect: "1" }), task({ queue, effect: "2" })] });
    const [first] = await claim(queue, 1);
    await store().tasks.renew([{ token: first?.token ?? "", lease: hour, beat: true, details: "[7]" }]);
    await store().tasks.release([first?.token ?? ""]);
    const [again] = await claim(queue, 1);
    assert.deepEqual([again?.effect, again?.details], ["1", "[7]"]);
  });

  test("what is said of a task at once is all heard: signs of life, then that it is handed back", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    await start(at, { tasks: [task({ queue, effect: "1" })] });
    for (let round = 0; round < 30; round += 1) {
      const [claimed] = await claim(queue, 1);
      const token = claimed?.token ?? "";
      const renew = () => store().tasks.renew([{ token, lease: hour, beat: true, details: `[${round}]` }]);
      const held = await Promise.all([renew(), renew(), renew(), renew()]);
      assert.deepEqual(
        held.map(({ size }) => size),
        [1, 1, 1, 1],
      );
      const [, released] = await Promise.all([renew(), store().tasks.release([token]), renew()]);
      assert.equal(released.length, 1, `round ${round}`);
    }
  });

  test("the outcome of a task whose run is closed is taken and dropped", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const turn = await start(at, { tasks: [task({ queue, effect: "1" }), task({ queue, effect: "2" })] });
    const [first] = await claim(queue, 1);
    await commit(at, next(at, turn, { status: "Completed", tasksDone: ["2"] }));
    assert.equal((await settle(first?.token ?? ""))?.kind, "settled");
    assert.deepEqual(await inboxOf(at, turn.run), []);
    assert.deepEqual(await claim(queue, 5), []);
  });

  test("queues tell how much waits in them, since when, and how much is leased; what is written or handed back waits anew", async () => {
    const at = await scenario(store());
    const queue = unique("queue-");
    const depth = async () => (await store().tasks.depths()).find((each) => each.queue === queue);
    const before = await storeTime();
    const turn = await start(at, { tasks: [1, 2, 3].map((n) => task({ queue, effect: `${n}` })) });
    const after = await timePasses();
    await commit(at, next(at, turn, { tasks: [task({ queue, effect: "4" })] }));
    const [first] = await claim(queue, 1);
    const { oldestAt = 0, ...counts } = (await depth()) ?? {};
    assert.deepEqual(counts, { queue, waiting: 3, leased: 1 });
    assert.ok(before <= oldestAt && oldestAt < after, `${before} <= ${oldestAt} < ${after}`);
    assert.equal((await claim(queue, 2)).length, 2);
    assert.ok(((await depth())?.oldestAt ?? 0) >= after, "the oldest of those that wait is the last one now");
    await claim(queue, 1);
    assert.deepEqual(await depth(), { queue, waiting: 0, leased: 4 });
    const later = await timePasses();
    await store().tasks.release([first?.token ?? ""]);
    assert.ok(((await depth())?.oldestAt ?? 0) >= later, "handed back");
    const latest = await timePasses();
    await commit(at, laterTurn(at, { run: turn.run, tail: 4, tasks: [task({ queue, effect: "1", attempt: 2 })] }));
    assert.ok(((await depth())?.oldestAt ?? 0) >= latest, "written again");
  });

  test("queues in which tasks wait are told by name; of those that nobody takes from, what has waited for long and comes next", async () => {
    const at = await scenario(store());
    const [lone, taken, empty, other] = ["a", "b", "c", "d"].map((name) => unique(`waiting-${name}-`)) as [string, string, string, string];
    await start(at, { tasks: [task({ queue: lone, priority: 2 }), task({ queue: taken }), task({ queue: other })] });
    await start(at, { shard: shard(at, 1), tasks: [task({ queue: lone, priority: 1 }), task({ queue: empty })] });
    assert.deepEqual(await store().tasks.sweep(at.shards, 10), { overdue: [], waits: true });
    assert.equal((await claim(empty, 1)).length, 1);
    const waiting = async (longest: number, limit = 10_000) =>
      (await store().tasks.waiting({ taken: [taken], longest, limit })).filter(({ queue }) => [lone, taken, empty, other].includes(queue));
    assert.deepEqual(await waiting(hour), [{ queue: lone }, { queue: taken }, { queue: other }]);
    const [first, second, third] = await waiting(0);
    assert.ok((first?.late?.waited ?? -1) >= 0 && (first?.late?.waited ?? hour) < hour, JSON.stringify(first));
    assert.deepEqual([first?.queue, first?.late?.shard], [lone, shard(at, 1)]);
    assert.deepEqual(second, { queue: taken });
    assert.deepEqual([third?.queue, third?.late?.shard], [other, shard(at)]);
    assert.equal((await store().tasks.waiting({ taken: [], longest: 0, limit: 1 })).length, 1);
  });

  test("of the workers whose word holds it is told how many take tasks from a queue", async () => {
    const [one, two] = [unique("queue-"), unique("queue-")];
    const worker = (takes: readonly string[], within = hour, id = unique("worker-")) => ({ id, about: "{}", takes, within });
    const takers = async () => {
      const all = await store().tasks.takers();
      return [all.get(one), all.get(two)];
    };
    const first = worker([one, two]);
    await store().tasks.saveWorkers([first, worker([one]), worker([one, two], -1_000), worker([])]);
    assert.deepEqual(await takers(), [2, 1]);
    await store().tasks.saveWorkers([{ ...first, takes: [] }]);
    assert.deepEqual(await takers(), [1, undefined]);
  });

  test("workers are kept as they told of themselves last, and forgotten when they have been silent for long", async () => {
    const id = unique("worker-");
    const known = async () => (await store().tasks.listWorkers({ limit: 10_000 })).find((worker) => worker.id === id);
    await store().tasks.saveWorkers([{ id, about: "{}", takes: [], within: 0 }]);
    await store().tasks.saveWorkers([{ id, about: '{"b":2}', takes: [], within: hour }]);
    const worker = await known();
    assert.deepEqual([worker?.about, worker?.isOverdue], ['{"b":2}', false]);
    assert.deepEqual(
      (await store().tasks.listWorkers({ after: id, limit: 1 })).filter((each) => each.id <= id),
      [],
    );
    await store().tasks.expire(hour);
    assert.ok((await known()) !== undefined);
    await store().tasks.expire(-1_000);
    assert.equal(await known(), undefined);
  });
}
