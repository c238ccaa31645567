import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deadlineFirst, fair, fifo, priority, type SchedulingStrategy, type WaitingAttempt } from "../../src/index.ts";
import { schedulingContract, waitingAttempt } from "../../src/scheduling-contract.ts";

schedulingContract("fifo", fifo);
schedulingContract("priority", () => priority());
schedulingContract("deadlineFirst", () => deadlineFirst());
schedulingContract("fair", () => fair({ weights: { a: 3, b: 0.5 } }));
schedulingContract("fair over priority", () => fair({ within: priority({ ageing: "10s" }) }));

const second = 1_000;

/** The order in which a strategy takes attempts that were all added before. */
function orderOf(strategy: SchedulingStrategy, attempts: readonly WaitingAttempt[], now = 0): WaitingAttempt[] {
  const queue = strategy.createQueue();
  for (const attempt of attempts) queue.add(attempt, now);
  return attempts.map(() => queue.take(now) as WaitingAttempt);
}

describe("the priority strategy", () => {
  it("takes the most urgent first, and of one priority the one that was due first", () => {
    const attempts = (["low", "normal", "critical", "high", "normal"] as const).map((priority, index) =>
      waitingAttempt({ priority, since: index }),
    );
    assert.deepEqual(
      orderOf(priority(), attempts).map(({ priority, since }) => [priority, since]),
      [
        ["critical", 2],
        ["high", 3],
        ["normal", 1],
        ["normal", 4],
        ["low", 0],
      ],
    );
  });

  it("ages: what has waited so long comes before what is one step more urgent and comes now", () => {
    const strategy = priority({ ageing: "10s" });
    const low = waitingAttempt({ priority: "low", since: 0 });
    const at = (since: number) => waitingAttempt({ priority: "normal", since });
    assert.equal(orderOf(strategy, [low, at(9 * second)])[1], low);
    assert.equal(orderOf(strategy, [low, at(11 * second)])[0], low);
    const critical = waitingAttempt({ priority: "critical", since: 29 * second });
    assert.equal(orderOf(strategy, [low, critical])[0], critical);
    assert.equal(orderOf(strategy, [low, waitingAttempt({ priority: "critical", since: 31 * second })])[0], low);
  });
});

describe("the deadline-first strategy", () => {
  it("takes the earliest deadline first; what has none counts as if it had the allowance", () => {
    const [late, soon, none] = [
      waitingAttempt({ deadline: 50 * second }),
      waitingAttempt({ deadline: 10 * second }),
      waitingAttempt({ since: 0 }),
    ];
    assert.deepEqual(orderOf(deadlineFirst({ allowance: "20s" }), [late, soon, none]), [soon, none, late]);
  });
});

describe("the fair strategy", () => {
  it("H120 the first task of another tenant is next, behind a backlog of 100,000", () => {
    const queue = fair().createQueue();
    for (let at = 0; at < 100_000; at += 1) queue.add(waitingAttempt({ tenant: "big", since: at }), at);
    for (let at = 0; at < 1_000; at += 1) assert.equal(queue.take(100_000)?.tenant, "big");
    const first = waitingAttempt({ tenant: "small" });
    queue.add(first, 100_000);
    const next = [queue.take(100_001), queue.take(100_001)];
    assert.ok(next.includes(first));
  });

  it("shares by weight", () => {
    const queue = fair({ weights: { a: 3 } }).createQueue();
    for (let at = 0; at < 400; at += 1) for (const tenant of ["a", "b"]) queue.add(waitingAttempt({ tenant, since: at }), at);
    const taken = Array.from({ length: 400 }, () => queue.take(400)?.tenant);
    assert.equal(taken.filter((tenant) => tenant === "a").length, 300);
  });

  it("coming one by one is no way to be first again and again", () => {
    const queue = fair().createQueue();
    for (let at = 0; at < 200; at += 1) queue.add(waitingAttempt({ tenant: "steady" }), 0);
    let greedy = 0;
    for (let at = 0; at < 200; at += 1) {
      if (at === 0 || greedy > 0) queue.add(waitingAttempt({ tenant: "greedy" }), at);
      if (queue.take(at)?.tenant === "greedy") greedy += 1;
    }
    assert.ok(greedy <= 101, `${greedy} of 200`);
  });

  it("shares by whatever is asked for", () => {
    const queue = fair({ by: ({ activity }) => activity }).createQueue();
    for (let at = 0; at < 10; at += 1) queue.add(waitingAttempt({ activity: "mail" }), 0);
    queue.add(waitingAttempt({ activity: "charge" }), 0);
    assert.ok([queue.take(0), queue.take(0)].some((next) => next?.activity === "charge"));
  });

  it("what is not shared well is refused", () => {
    assert.throws(() => fair({ weights: { a: 0 } }), { code: "INVALID_OPTION", message: /weight of "a"/ });
    assert.throws(() => priority({ aging: "1m" } as never), { code: "INVALID_OPTION" });
  });
});
