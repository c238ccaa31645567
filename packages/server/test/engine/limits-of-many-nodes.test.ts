import assert from "node:assert/strict";
import { test } from "node:test";
import { encodePayload, resolveConcurrency, resolveRateLimit } from "@wovyr/sdk/internal";
import { VirtualClock } from "@wovyr/testing";
import fc from "fast-check";
import type { Attempt } from "../../src/engine/attempt.ts";
import { Limits } from "../../src/engine/limits/limits.ts";
import { type Store, StoreUnavailableError } from "../../src/engine/ports/store.ts";
import { fifo } from "../../src/engine/scheduling/fifo.ts";
import { memoryStore } from "../../src/index.ts";
import { macrotasks } from "./case.ts";

const lease = 10_000;
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

type Fault = "none" | "before" | "after";
type Definition = Partial<Attempt["call"]["definition"]>;

const limitedTo = (limit: number): Definition => ({ concurrency: resolveConcurrency({ limit }, "concurrency") });
const rated = (limit: number, per: number): Definition => ({ rateLimit: resolveRateLimit({ limit, per }, "rateLimit") });

/** Nodes over one store that have nothing but limits: what passes them runs until it is ended. */
class Nodes {
  readonly clock = new VirtualClock(0);
  readonly #store: Store;
  readonly nodes: Node[] = [];
  /** When each began, in order. */
  readonly begun: number[] = [];
  readonly ids = new Set<string>();
  fault: () => Fault = () => "none";
  #names = 0;
  #attempts = 0;

  private constructor(store: Store) {
    this.#store = store;
  }

  static async open(count: number): Promise<Nodes> {
    let nodes: Nodes | undefined;
    const store = await memoryStore().open({ now: () => nodes?.clock.now() ?? 0, log });
    nodes = new Nodes(store);
    for (let at = 0; at < count; at += 1) nodes.nodes.push(nodes.newNode());
    return nodes;
  }

  get running(): number {
    return this.nodes.reduce((sum, node) => sum + node.running.size, 0);
  }

  newNode(): Node {
    this.#names += 1;
    const node: Node = new Node(`node-${this.#names}`, this, this.#faulty());
    return node;
  }

  /** Whether a call reaches the store, and whether its answer comes back. */
  #faulty(): Store {
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      const fault = this.fault();
      if (fault === "before") throw new StoreUnavailableError("it is away");
      const value = await work();
      if (fault === "after") throw new StoreUnavailableError("the answer is lost");
      return value;
    };
    const store = this.#store;
    return {
      exchangePermits: (...args: Parameters<Store["exchangePermits"]>) => call(() => store.exchangePermits(...args)),
      takeTokens: (...args: Parameters<Store["takeTokens"]>) => call(() => store.takeTokens(...args)),
      listPermitOwners: async () => [],
      releasePermits: (...args: Parameters<Store["releasePermits"]>) => call(() => store.releasePermits(...args)),
    } as unknown as Store;
  }

  attempt(definition: Definition, name?: string): Attempt {
    this.#attempts += 1;
    const id = name ?? `r${this.#attempts}`;
    return {
      tenant: "t",
      run: id,
      effect: "0",
      call: { definition: { name: "work", ...definition }, options: {} },
      activity: { name: "work", input: encodePayload(null, { limit: 1_000, what: "input" }), scheduledAt: this.clock.now(), attempt: 1 },
    } as unknown as Attempt;
  }

  async pass(milliseconds: number): Promise<void> {
    const until = this.clock.now() + milliseconds;
    for (;;) {
      await macrotasks(3);
      const { next } = this.clock;
      if (next === undefined || next > until) break;
      this.clock.advanceTo(next);
    }
    this.clock.advanceTo(until);
    await macrotasks(3);
  }
}

class Node {
  readonly limits: Limits;
  readonly running = new Map<string, Attempt>();
  readonly refused: string[] = [];
  #wakeUps = new Set<() => void>();
  #frozen: (() => void)[] | undefined;

  constructor(name: string, nodes: Nodes, store: Store) {
    const { clock } = nodes;
    this.limits = new Limits({
      store,
      log,
      node: name,
      group: "g",
      lease,
      scheduling: fifo(),
      tenantLimits: undefined,
      ownership: { holds: true },
      deadOwners: () => [],
      room: () => 1_000_000,
      clock: {
        now: () => clock.now(),
        wakeAt: (at, wake) => {
          const cancel = clock.wakeAt(at, () => {
            this.#wakeUps.delete(cancel);
            if (this.#frozen === undefined) wake();
            else this.#frozen.push(wake);
          });
          this.#wakeUps.add(cancel);
          return cancel;
        },
      },
      admitted: (attempt) => {
        this.running.set(attempt.run, attempt);
        nodes.begun.push(clock.now());
        nodes.ids.add(attempt.run);
      },
      refused: (attempt) => {
        this.refused.push(attempt.run);
        this.end(attempt.run);
      },
      lapsed: (attempt) => {
        this.end(attempt.run);
        this.limits.admit(attempt);
      },
    });
  }

  /** It ends, or is not to begin any more. */
  end(run: string): void {
    this.running.delete(run);
    this.limits.ended(`${run}/0`);
  }

  freeze(): void {
    this.#frozen = [];
  }

  thaw(): void {
    const wakeUps = this.#frozen ?? [];
    this.#frozen = undefined;
    for (const wake of wakeUps) wake();
  }

  /** All that it ran and waited for. */
  kill(): Attempt[] {
    for (const cancel of this.#wakeUps) cancel();
    const ran = [...this.running.values()];
    this.running.clear();
    this.limits.forget();
    return ran;
  }
}

test("a limit holds over all nodes, and a permit that one of them gives up goes to another", async () => {
  const nodes = await Nodes.open(2);
  const [a, b] = nodes.nodes as [Node, Node];
  for (let at = 0; at < 5; at += 1) for (const node of [a, b]) node.limits.admit(nodes.attempt(limitedTo(2)));
  await nodes.pass(1_000);
  assert.equal(nodes.running, 2);
  for (let done = 0; done < 10; done += 1) {
    const node = a.running.size > 0 && (done % 2 === 0 || b.running.size === 0) ? a : b;
    node.end([...node.running.keys()][0] as string);
    await nodes.pass(1_500);
    assert.ok(nodes.running <= 2);
  }
  assert.equal(nodes.ids.size, 10);
});

test("one permit goes from node to node: neither keeps it while the other waits", async () => {
  const nodes = await Nodes.open(2);
  for (let at = 0; at < 30; at += 1) for (const node of nodes.nodes) node.limits.admit(nodes.attempt(limitedTo(1)));
  const served = nodes.nodes.map(() => 0);
  for (let step = 0; step < 400 && nodes.ids.size < 30; step += 1) {
    await nodes.pass(250);
    for (const [at, node] of nodes.nodes.entries())
      for (const run of [...node.running.keys()]) {
        served[at] = (served[at] as number) + 1;
        node.end(run);
      }
  }
  assert.ok(Math.min(...served) >= 8, `${served}`);
});

test("a busy limit of one node costs no statement per attempt", async () => {
  const nodes = await Nodes.open(1);
  const [node] = nodes.nodes as [Node];
  let statements = 0;
  nodes.fault = () => {
    statements += 1;
    return "none";
  };
  for (let at = 0; at < 1_000; at += 1) node.limits.admit(nodes.attempt(limitedTo(3)));
  while (nodes.ids.size < 1_000) {
    await nodes.pass(1);
    for (const run of [...node.running.keys()]) node.end(run);
  }
  assert.ok(statements <= 5, `${statements}`);
});

test("a node that was frozen beyond its lease stops what it ran when it wakes, before it asks for more", async () => {
  const nodes = await Nodes.open(2);
  const [frozen, other] = nodes.nodes as [Node, Node];
  frozen.limits.admit(nodes.attempt(limitedTo(1), "kept"));
  await nodes.pass(100);
  assert.deepEqual([...frozen.running.keys()], ["kept"]);
  frozen.freeze();
  other.limits.admit(nodes.attempt(limitedTo(1), "next"));
  await nodes.pass(lease - 200);
  assert.equal(other.running.size, 0, "the lease has not ended");
  await nodes.pass(1_000);
  assert.deepEqual([...other.running.keys()], ["next"]);
  frozen.thaw();
  await nodes.pass(0);
  assert.equal(frozen.running.size, 0);
  other.end("next");
  await nodes.pass(2_000);
  assert.deepEqual([...frozen.running.keys()], ["kept"], "it is made again");
});

test("what the store did with a call whose answer was lost counts as taken until the lease ends", async () => {
  const nodes = await Nodes.open(2);
  const [a, b] = nodes.nodes as [Node, Node];
  nodes.fault = () => "after";
  a.limits.admit(nodes.attempt(limitedTo(1), "a"));
  await nodes.pass(100);
  assert.equal(a.running.size, 0);
  a.limits.ended("a/0");
  const [lost] = [a.kill()];
  assert.deepEqual(lost, []);
  nodes.fault = () => "none";
  b.limits.admit(nodes.attempt(limitedTo(1), "b"));
  await nodes.pass(lease - 500);
  assert.equal(b.running.size, 0);
  await nodes.pass(2_000);
  assert.equal(b.running.size, 1);
});

test("while the store does not answer, what ends makes room for one, and for no more", async () => {
  const nodes = await Nodes.open(2);
  for (const node of nodes.nodes) for (let at = 0; at < 4; at += 1) node.limits.admit(nodes.attempt(limitedTo(2)));
  await nodes.pass(5_000);
  for (const { running } of nodes.nodes)
    for (const run of [...running.keys()].slice(1)) nodes.nodes.find((node) => node.running.has(run))?.end(run);
  await nodes.pass(3_000);
  assert.deepEqual(
    nodes.nodes.map(({ running }) => running.size),
    [1, 1],
  );
  nodes.fault = () => "before";
  await nodes.pass(2_000);
  const [a] = nodes.nodes as [Node, Node];
  a.end([...a.running.keys()][0] as string);
  await nodes.pass(1_000);
  assert.ok(nodes.running <= 2, `${nodes.running}`);
});

type Step =
  | { readonly kind: "come"; readonly node: number }
  | { readonly kind: "end"; readonly node: number }
  | { readonly kind: "kill"; readonly node: number }
  | { readonly kind: "pass"; readonly time: number };

const arbitrarySteps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("come" as const), node: fc.nat(2) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("end" as const), node: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), node: fc.nat(2) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass" as const), time: fc.nat(4_000) }) },
  ),
  { maxLength: 30 },
);

test("H118 never more run than may, and everyone gets through, whatever nodes die and whatever the store answers", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      arbitrarySteps,
      fc.infiniteStream(fc.constantFrom<Fault>("none", "none", "none", "before", "after")),
      async (limit, steps, faults) => {
        const nodes = await Nodes.open(3);
        nodes.fault = () => faults.next().value;
        const check = () => assert.ok(nodes.running <= limit, `${nodes.running} of ${limit}`);
        const came = new Map<string, Attempt>();
        const come = (node: Node, attempt: Attempt) => {
          came.set(attempt.run, attempt);
          node.limits.admit(attempt);
        };
        const waitingOf = new Map<string, Node>();
        for (const step of steps as readonly Step[]) {
          if (step.kind === "pass") await nodes.pass(step.time);
          else {
            const node = nodes.nodes[step.node] as Node;
            if (step.kind === "come") {
              const attempt = nodes.attempt(limitedTo(limit));
              come(node, attempt);
              waitingOf.set(attempt.run, node);
            } else if (step.kind === "end") {
              const [run] = node.running.keys();
              if (run !== undefined) node.end(run);
            } else {
              const heir = nodes.newNode();
              node.kill();
              nodes.nodes[step.node] = heir;
              // What it ran or kept waiting is made again by another one.
              for (const [run, owner] of waitingOf)
                if (owner === node && (!nodes.ids.has(run) || came.has(run))) {
                  waitingOf.set(run, heir);
                  heir.limits.admit(came.get(run) as Attempt);
                }
            }
          }
          check();
        }
        nodes.fault = () => "none";
        for (let round = 0; round < 400 && nodes.ids.size < came.size; round += 1) {
          await nodes.pass(1_000);
          check();
          for (const node of nodes.nodes) for (const run of [...node.running.keys()]) node.end(run);
        }
        assert.equal(nodes.ids.size, came.size);
      },
    ),
    { numRuns: 60 },
  );
});

test("no more begin within any period than may, over all nodes, whatever the store answers", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 100, max: 5_000 }),
      fc.array(fc.tuple(fc.nat(1), fc.nat(3_000)), { maxLength: 20 }),
      fc.infiniteStream(fc.constantFrom<Fault>("none", "none", "before", "after")),
      async (limit, per, comes, faults) => {
        const nodes = await Nodes.open(2);
        nodes.fault = () => faults.next().value;
        for (const [node, time] of comes) {
          nodes.nodes[node]?.limits.admit(nodes.attempt(rated(limit, per)));
          await nodes.pass(time);
        }
        nodes.fault = () => "none";
        for (let round = 0; round < 100 && nodes.ids.size < comes.length; round += 1) await nodes.pass(per);
        assert.equal(nodes.ids.size, comes.length, "everyone gets through");
        for (const [at, from] of nodes.begun.entries())
          assert.ok(nodes.begun.slice(at).filter((time) => time < from + per).length <= limit, `${nodes.begun}`);
      },
    ),
    { numRuns: 60 },
  );
});

test("what runs longest is ended on whatever node it is, when it is to make room", async () => {
  const nodes = await Nodes.open(2);
  const [a, b] = nodes.nodes as [Node, Node];
  const definition: Definition = { concurrency: resolveConcurrency({ limit: 1, onLimit: "cancelInProgress" }, "concurrency") };
  a.limits.admit(nodes.attempt(definition, "old"));
  await nodes.pass(5_000);
  b.limits.admit(nodes.attempt(definition, "new"));
  await nodes.pass(2_000);
  assert.deepEqual([a.refused, [...a.running.keys()], [...b.running.keys()]], [["old"], [], ["new"]]);
});
