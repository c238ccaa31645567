/**
 * The contract of a scheduling strategy, as tests: whoever writes one runs them against it.
 *
 *     schedulingContract("my strategy", () => myStrategy());
 */
import assert from "node:assert/strict";
import * as nodeTest from "node:test";
import fc from "fast-check";
import type { SchedulingQueue, SchedulingStrategy, WaitingAttempt } from "./engine/scheduling/strategy.ts";

/** The parts of `node:test` that the contract uses. */
export type SchedulingTestApi = {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => void): unknown;
};

export type SchedulingContractOptions = {
  /** How long anyone may be overtaken by what comes later, while one attempt a second is taken; default 1 day, in milliseconds. */
  readonly patience?: number;
  /** How often properties are tried; default 100. */
  readonly runs?: number;
  /** The test runner; `node:test` unless given. */
  readonly testApi?: SchedulingTestApi;
};

const priorities = ["critical", "high", "normal", "low"] as const;
const day = 24 * 3_600_000;

/** An attempt that waits. */
export function waitingAttempt(details: Partial<WaitingAttempt> = {}): WaitingAttempt {
  return Object.freeze({
    tenant: "a",
    workflow: "w",
    instanceId: "i",
    activity: "act",
    priority: "normal",
    since: 0,
    deadline: undefined,
    ...details,
  });
}

const arbitraryAttempt = fc
  .record({
    tenant: fc.constantFrom("a", "b", "c"),
    activity: fc.constantFrom("x", "y"),
    priority: fc.constantFrom(...priorities),
    since: fc.nat(100_000),
    deadline: fc.option(fc.nat(200_000), { nil: undefined }),
  })
  .map(waitingAttempt);

const arbitrarySteps = fc.array(fc.oneof(arbitraryAttempt, fc.constant("take" as const)), { maxLength: 120 });

/** Declares the tests of the contract. */
export function schedulingContract(
  name: string,
  create: () => SchedulingStrategy,
  { patience = day, runs = 100, testApi = nodeTest }: SchedulingContractOptions = {},
): void {
  testApi.describe(`the contract of scheduling strategy ${name}`, () => {
    testApi.test("it has a name, and makes empty queues that know nothing of each other", () => {
      const strategy = create();
      assert.ok(strategy.name.length > 0);
      const [first, second] = [strategy.createQueue(), strategy.createQueue()];
      first.add(waitingAttempt(), 0);
      assert.deepEqual([first.size, second.size], [1, 0]);
      assert.equal(second.take(0), undefined);
    });

    testApi.test("what was added is given back, each once, and the size says how many are left", () => {
      fc.assert(
        fc.property(arbitrarySteps, (steps) => {
          const queue = create().createQueue();
          const waiting = new Set<WaitingAttempt>();
          for (const [now, step] of steps.entries()) {
            if (step === "take") {
              if (waiting.size > 0) takes(queue, waiting, now);
              else assert.equal(queue.take(now), undefined);
            } else {
              // Each is an object of its own.
              const added = waitingAttempt(step);
              waiting.add(added);
              queue.add(added, now);
            }
            assert.equal(queue.size, waiting.size);
          }
          while (waiting.size > 0) takes(queue, waiting, steps.length);
          assert.equal(queue.take(steps.length), undefined);
        }),
        { numRuns: runs },
      );
    });

    testApi.test("the same calls lead to the same order", () => {
      fc.assert(
        fc.property(arbitrarySteps, (steps) => {
          assert.deepEqual(orderOf(create(), steps), orderOf(create(), steps));
        }),
        { numRuns: runs },
      );
    });

    testApi.test("nobody waits for ever, whatever comes meanwhile", () => {
      for (const rival of rivals) {
        const queue = create().createQueue();
        const patient = waitingAttempt({ tenant: "patient", activity: "slow", priority: "low" });
        queue.add(rival(0), 0);
        queue.add(patient, 0);
        let now = 0;
        while (queue.take(now) !== patient) {
          now += 1_000;
          assert.ok(now <= patience, "it is overtaken for longer than it may be");
          queue.add(rival(now), now);
        }
      }
    });

    testApi.test("100,000 that wait are taken without reading all of them each time", () => {
      const queue = create().createQueue();
      const count = 100_000;
      const began = performance.now();
      for (let at = 0; at < count; at += 1)
        queue.add(waitingAttempt({ tenant: `t${at % 100}`, priority: priorities[at % 4] as "low", since: at, deadline: count - at }), at);
      while (queue.take(count) !== undefined);
      assert.ok(performance.now() - began < 20_000);
    });
  });
}

/** What might overtake others again and again. */
const rivals: readonly ((now: number) => WaitingAttempt)[] = [
  (now) => waitingAttempt({ since: now, priority: "critical" }),
  (now) => waitingAttempt({ since: now, deadline: now + 1 }),
  (now) => waitingAttempt({ since: now, priority: "critical", deadline: now + 1, tenant: `t${now}` }),
  (now) => waitingAttempt({ since: now, tenant: "patient" }),
];

function takes(queue: SchedulingQueue, waiting: Set<WaitingAttempt>, now: number): void {
  const next = queue.take(now);
  assert.ok(next !== undefined && waiting.delete(next), "it gives one that waits");
}

function orderOf(strategy: SchedulingStrategy, steps: readonly (WaitingAttempt | "take")[]): readonly number[] {
  const queue = strategy.createQueue();
  const added: WaitingAttempt[] = [];
  const taken: number[] = [];
  for (const [now, step] of steps.entries()) {
    if (step === "take") taken.push(added.indexOf(queue.take(now) as WaitingAttempt));
    else {
      const attempt = waitingAttempt(step);
      added.push(attempt);
      queue.add(attempt, now);
    }
  }
  return taken;
}
