/**
 * Many nodes in one process, over one memory store and virtual time, with calls of the store that take their time.
 *
 * 1. A node that crashes does nothing any more; what its store had done by then is done. One that is frozen does all of it when it is thawed.
 * 2. At no moment do two nodes that are not frozen both take a shard for theirs.
 * 3. No turn is written by a node that does not own its shard.
 * 4. No attempt begins at a node that may not act on its shard.
 * 5. A turn that never yields is the end of its node, which has noted it before.
 * 6. Whoever asks for something asks the node that owns the run, and again until it is done, under the same key.
 */
import assert from "node:assert/strict";
import type { AnyWorkflow } from "@wovyr/sdk";
import { defaultLimits, type Operations } from "@wovyr/sdk/internal";
import {
  type Beat,
  defaultAdmissionLimits,
  defaultJournalLimits,
  defaultPublicationRetention,
  type Engine,
  EngineHost,
  type Flush,
  type FlushOutcome,
  inProcess,
  type Membership,
  memoryStore,
  Registry,
  type Store,
  type StoreProvider,
  StoreUnavailableError,
  severalDatabases,
  systemLoop,
} from "@wovyr/server/internal";
import { SeededRandom, VirtualClock } from "@wovyr/testing";
import { storeAround } from "./store-around.ts";

export const lease = 10_000;
const shards = 32;
const tenant = "default";
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const never = new Promise<never>(() => {});

type Strike = { readonly tenant: string; readonly run: string; readonly workflow: string; readonly tail: number };

export type NodeOptions = { readonly workflows?: readonly AnyWorkflow[]; readonly release?: string; readonly activities?: number };

export class SimulatedNode {
  readonly name: string;
  readonly host: EngineHost;
  readonly logs: string[] = [];
  /** Whether its calls of the store fail. */
  cutOff = false;
  /** Databases that it cannot reach. */
  readonly cutFrom = new Set<number>();
  /** While it is there, calls of the store go out when it resolves. */
  silence: Promise<void> | undefined;
  /** A method of the store: when it is called next, the node freezes before the call arrives. */
  freezeAt: string | undefined;
  /** A method of the store whose answers take 20 ms more. */
  slowAt: string | undefined;
  readonly #cluster: Cluster;
  #turnOf: Strike | undefined;
  #state: "alive" | "frozen" | "closing" | "gone" = "alive";
  #thaw = () => {};
  #frozen: Promise<void> | undefined;

  constructor(cluster: Cluster, name: string, { workflows = cluster.workflows, release, activities = 1_000 }: NodeOptions) {
    this.#cluster = cluster;
    this.name = name;
    const { clock, random } = cluster;
    const note = (message: string, data?: object) => {
      const { error } = (data ?? {}) as { error?: unknown };
      this.logs.push(`${clock.now() - cluster.began} ${message} ${error === undefined ? "" : String((error as Error).stack)}`);
    };
    this.host = new EngineHost({
      provider: cluster.around((store, place) => this.#around(store, place)),
      registry: new Registry(workflows.map(({ definition }) => definition)),
      log: { ...silent, warn: note, error: note, info: note },
      clock: { now: () => clock.now(), wakeAt: (at, wake) => clock.wakeAt(at, () => this.#act(wake)) },
      random,
      loop: { ...systemLoop, immediate: (run) => cluster.moves((done) => systemLoop.immediate(() => this.#act(run, done))) },
      executor: {
        execute: (definition, input, ctx) => {
          if (!this.owns(this.host.engine.shardOf(tenant, ctx.instanceId)))
            cluster.trespasses.push(`${name} began an attempt of ${ctx.instanceId}`);
          const result = inProcess.execute(definition, input, ctx);
          return result instanceof Promise ? result.finally(() => this.#turn()) : result;
        },
      },
      codec: undefined,
      limits: {
        execution: defaultLimits,
        cache: { instances: 100, bytes: 1e9 },
        journal: defaultJournalLimits,
        activities,
        admission: defaultAdmissionLimits,
        waiters: 100_000,
      },
      group: "default",
      shards,
      node: name,
      ...(release !== undefined && { release }),
      lease,
      publicationRetention: defaultPublicationRetention,
      deadOwners: (owners) =>
        cluster.seesDead ? owners.filter((owner) => cluster.nodes.some((node) => node.name === owner && node.gone)) : [],
      turnBegan: (run, tail) => {
        this.#turnOf = run && { tenant: run.tenant, run: run.run, workflow: run.workflow, tail };
      },
    });
  }

  /** What workflow code calls that does not yield any more: the node is ended by its watchdog. */
  block(): void {
    if (!this.alive) return;
    assert.ok(this.#turnOf);
    this.#cluster.strike(this.#turnOf);
    this.crash();
  }

  get alive(): boolean {
    return this.#state === "alive";
  }

  get gone(): boolean {
    return this.#state === "gone";
  }

  get frozen(): boolean {
    return this.#state === "frozen";
  }

  /** Undefined before it is up. */
  get engine(): Engine | undefined {
    try {
      return this.host.engine;
    } catch {
      return undefined;
    }
  }

  get operations(): Operations {
    return this.host.operations(tenant);
  }

  owns(shard: number): boolean {
    const ownership = this.engine?.ownership;
    return ownership?.holds === true && ownership.owns(shard);
  }

  crash(): void {
    this.#state = "gone";
  }

  freeze(): void {
    this.freezeAt = undefined;
    this.#state = "frozen";
    this.#frozen = new Promise((resolve) => {
      this.#thaw = resolve;
    });
  }

  thaw(): void {
    this.#state = "alive";
    this.#frozen = undefined;
    this.#thaw();
  }

  async close(): Promise<void> {
    this.#state = "closing";
    await this.host.close(5_000);
    this.#state = "gone";
  }

  /** Does it now, when it is thawed, or (it is gone) never. */
  #act(run: () => void, done = () => {}): void {
    done();
    if (this.#state === "gone") return;
    if (this.#frozen === undefined) run();
    else void this.#frozen.then(() => this.#act(run));
  }

  #around(store: Store, place: number): Store {
    return storeAround(store, async (name, args, call) => {
      if (name === "close") return call();
      await this.#turn();
      if (this.silence !== undefined) await this.silence;
      await this.#cluster.latency();
      if (name === this.slowAt) await this.#cluster.sleep(20);
      if (name === this.freezeAt) this.freeze();
      await this.#turn();
      const fate = this.#cluster.flaky === 0 ? 1 : this.#cluster.random.fraction();
      if (this.cutOff || this.cutFrom.has(place) || this.#cluster.away.has(place) || fate < this.#cluster.flaky / 2)
        throw new StoreUnavailableError("the network is away");
      const ended = this.#cluster.begin();
      const answer = this.#cluster.struck(name, args) ?? call();
      await answer.then(
        (value) => this.#cluster.watch(place, name, args, value),
        () => {},
      );
      ended();
      await this.#cluster.latency();
      await this.#turn();
      if (fate < this.#cluster.flaky) throw new StoreUnavailableError("the answer was lost");
      return answer;
    });
  }

  /** Resolves when it may go on, if ever. */
  async #turn(): Promise<void> {
    while (this.#frozen !== undefined) await this.#frozen;
    if (this.#state === "gone") await never;
  }
}

export class Cluster {
  readonly clock = new VirtualClock(Date.parse("2026-01-01T00:00:00Z"));
  readonly began = this.clock.now();
  readonly random: SeededRandom;
  /** Numbers of databases that cannot be reached. */
  readonly away = new Set<number>();
  readonly nodes: SimulatedNode[] = [];
  readonly workflows: readonly AnyWorkflow[];
  /** Of all calls of the store, this part fails: half of them without having been made, half of them after it. */
  flaky = 0;
  /** Whether nodes can see that others are dead, as those of one machine can. */
  seesDead = false;
  /** How often each node has said that it lives. */
  readonly beats = new Map<string, number>();
  readonly trespasses: string[] = [];
  readonly #databases: readonly StoreProvider[];
  readonly #owners = new Map<number, string | undefined>();
  #strikes: readonly (Strike & { readonly count: number })[] = [];
  #moving = 0;
  #last = 0;
  store: Store | undefined;

  constructor(workflows: readonly AnyWorkflow[], seed = 1, databases = 1) {
    this.workflows = workflows;
    this.#databases = Array.from({ length: databases }, () => memoryStore({ shared: true }));
    this.random = new SeededRandom(seed);
  }

  /** The store, with something around each of its databases. */
  around(wrap: (store: Store, place: number) => Store): StoreProvider {
    const wrapped = this.#databases.map(
      (provider, place): StoreProvider => ({ ...provider, open: async (options) => wrap(await provider.open(options), place) }),
    );
    return wrapped.length === 1 ? (wrapped[0] as StoreProvider) : severalDatabases(wrapped);
  }

  get databases(): number {
    return this.#databases.length;
  }

  get alive(): readonly SimulatedNode[] {
    return this.nodes.filter((node) => node.alive);
  }

  /** A node comes up; it is up when its `start` is done. */
  join(options: NodeOptions = {}): SimulatedNode {
    this.#last += 1;
    const node = new SimulatedNode(this, `n${this.#last}`, options);
    this.nodes.push(node);
    void node.host.start();
    return node;
  }

  /** How many shards each node owns that lives, by its own words. */
  shares(): number[] {
    return this.alive.map(({ engine }) => engine?.ownership.shards.length ?? 0);
  }

  /** Follows who owns what in the store, and who writes. */
  watch(place: number, name: string, args: readonly unknown[], answer: unknown): void {
    if (name === "beat") {
      const { node } = args[0] as Beat;
      this.beats.set(node, (this.beats.get(node) ?? 0) + 1);
      for (const { shard, owner } of (answer as Membership).shards)
        if (shard % this.#databases.length === place) this.#owners.set(shard, owner);
    }
    if (name !== "commit") return;
    const { done } = answer as FlushOutcome;
    for (const { run, shard, node } of (args[0] as Flush).turns)
      if (done.has(run) && this.#owners.get(shard) !== node) this.trespasses.push(`${node} wrote a turn of shard ${shard}`);
  }

  strike(turn: Strike): void {
    const known = this.#strikes.find(({ run, tail }) => run === turn.run && tail === turn.tail);
    this.#strikes = [...this.#strikes.filter((each) => each !== known), { ...turn, count: (known?.count ?? 0) + 1 }];
  }

  /** The store's answer on turns that never ended, of which that in memory knows nothing. */
  struck(name: string, [key]: readonly unknown[]): Promise<unknown> | undefined {
    if (name === "listStrikes") return Promise.resolve(this.#strikes);
    if (name !== "clearStrikes") return undefined;
    this.#strikes = this.#strikes.filter(({ run }) => run !== (key as { run: string }).run);
    return Promise.resolve();
  }

  begin(): () => void {
    this.#moving += 1;
    return () => {
      this.#moving -= 1;
    };
  }

  moves(start: (done: () => void) => void): void {
    start(this.begin());
  }

  async latency(): Promise<void> {
    if (this.random.fraction() < 0.5) return;
    const until = this.clock.now() + this.random.below(4);
    await this.sleepUntil(until);
  }

  sleepUntil(at: number): Promise<void> {
    return new Promise((resolve) => void this.clock.wakeAt(at, resolve));
  }

  sleep(milliseconds: number): Promise<void> {
    return this.sleepUntil(this.clock.now() + milliseconds);
  }

  /** Lets everything happen that is due in so many milliseconds. */
  async advance(milliseconds: number, each: () => void = () => {}): Promise<void> {
    const until = this.clock.now() + milliseconds;
    for (;;) {
      await this.#settle();
      this.#checkOwners();
      each();
      const { next } = this.clock;
      if (next === undefined || next > until) break;
      this.clock.advanceTo(next);
    }
    this.clock.advanceTo(until);
    await this.#settle();
  }

  /** Advances until a condition holds. */
  async until(what: string, met: () => boolean | Promise<boolean>, within = 60_000): Promise<void> {
    const latest = this.clock.now() + within;
    while (!(await met())) {
      assert.ok(this.clock.now() < latest, `${what}: not within ${within} ms of virtual time`);
      await this.advance(20);
    }
  }

  /** Advances until a call is answered, and answers like it. */
  async answered<T>(call: Promise<T>): Promise<T> {
    let over = false;
    const end = () => {
      over = true;
    };
    call.then(end, end);
    await this.until("it is answered", () => over);
    return call;
  }

  async #settle(): Promise<void> {
    for (let still = 0; still < 3; ) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      still = this.#moving > 0 || this.clock.due ? 0 : still + 1;
    }
  }

  #checkOwners(): void {
    assert.deepEqual(this.trespasses, []);
    const up = this.nodes.filter((node) => !node.gone && !node.frozen && node.engine !== undefined);
    for (let shard = 0; shard < shards; shard += 1) {
      const owners = up.filter((node) => node.owns(shard)).map(({ name }) => name);
      assert.ok(owners.length <= 1, `shard ${shard} is owned by ${owners.join(" and ")}`);
    }
  }

  /** The node that owns an instance, when there is one that can answer. */
  ownerOf(id: string): SimulatedNode | undefined {
    return this.alive.find(({ engine }) => engine?.ownership.holds === true && engine.mayEnter(engine.shardOf(tenant, id)));
  }

  /** Asks the owner, and again until it is done. */
  async ask<T>(id: string, call: (operations: Operations) => Promise<T>): Promise<T> {
    for (;;) {
      const owner = this.ownerOf(id);
      if (owner !== undefined) {
        const answer = call(owner.operations).then(
          (value) => ({ value }),
          (error: Error & { retryable?: boolean; code?: string }) => ({ error }),
        );
        // The node may go before it answers.
        const outcome = await Promise.race([answer, this.sleep(2_000)]);
        if (outcome !== undefined && "value" in outcome) return outcome.value;
        if (outcome !== undefined && outcome.error.retryable !== true && outcome.error.code !== "STORE_UNAVAILABLE") throw outcome.error;
      }
      await this.sleep(50);
    }
  }

  async opened(): Promise<Store> {
    this.store ??= await this.around((store) => store).open({ now: () => this.clock.now(), log: silent });
    return this.store;
  }

  /** The databases by themselves. */
  parts(): Promise<readonly Store[]> {
    return Promise.all(this.#databases.map((provider) => provider.open({ now: () => this.clock.now(), log: silent })));
  }

  crashAll(): void {
    for (const node of this.nodes) node.crash();
  }
}
