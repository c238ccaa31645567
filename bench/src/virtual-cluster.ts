/**
 * Orchestrators of one cluster in this process, on virtual time, over one store whose calls take theirs.
 *
 * 1. Time moves on when nothing is left to do in this moment; what the processor takes is for nothing.
 */
import { defaultLimits, type Operations } from "@wovyr/sdk/internal";
import {
  defaultAdmissionLimits,
  defaultJournalLimits,
  defaultPublicationRetention,
  EngineHost,
  inProcess,
  memoryStore,
  Registry,
  type Store,
  systemLoop,
} from "@wovyr/server/internal";
import { SeededRandom, VirtualClock } from "@wovyr/testing";
import { workflows } from "./workloads.ts";

/** Of a call of the store, in milliseconds. */
export const storeLatency = { commit: 2, other: 1 };
const tenant = "default";
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** Turns of the event loop without anything to do, after which there is nothing left to do. */
const stillness = 3;
/** Milliseconds of virtual time in which nodes come to share the shards evenly. */
const settling = 60_000;

export class VirtualCluster {
  readonly clock = new VirtualClock(Date.parse("2026-01-01T00:00:00Z"));
  readonly #provider = memoryStore({ shared: true });
  readonly #random = new SeededRandom(1);
  readonly #hosts: EngineHost[] = [];
  #moving = 0;
  /** Of the store, by all nodes. */
  calls = 0;

  /** As many nodes, each with its share of the shards. */
  static async open(nodes: number): Promise<VirtualCluster> {
    const cluster = new VirtualCluster();
    for (let at = 1; at <= nodes; at += 1) cluster.#hosts.push(cluster.#host(`node-${at}`));
    const started = Promise.all(cluster.#hosts.map((host) => host.start()));
    await cluster.passUntil(started);
    await cluster.pass(settling);
    return cluster;
  }

  /** What can be asked of each node. */
  get nodes(): readonly Operations[] {
    return this.#hosts.map((host) => host.operations(tenant));
  }

  /** Lets so many milliseconds pass. */
  async pass(milliseconds: number): Promise<void> {
    const until = this.clock.now() + milliseconds;
    await this.#move(() => (this.clock.next ?? Number.POSITIVE_INFINITY) > until);
    this.clock.advanceTo(until);
  }

  /** Lets time pass until something has happened. */
  async passUntil<T>(happens: Promise<T>): Promise<T> {
    let happened = false;
    const ended = () => {
      happened = true;
    };
    happens.then(ended, ended);
    await this.#move(() => happened);
    return happens;
  }

  async close(): Promise<void> {
    await this.passUntil(Promise.all(this.#hosts.map((host) => host.close(0))));
  }

  async #move(done: () => boolean): Promise<void> {
    for (;;) {
      await this.#settle();
      const { next } = this.clock;
      if (done() || next === undefined) return;
      this.clock.advanceTo(next);
    }
  }

  async #settle(): Promise<void> {
    for (let still = 0; still < stillness; ) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      still = this.#moving > 0 || this.clock.due ? 0 : still + 1;
    }
  }

  #host(node: string): EngineHost {
    return new EngineHost({
      provider: { kind: "memory", shared: true, open: async (options) => this.#around(await this.#provider.open(options)) },
      registry: new Registry(workflows.map(({ definition }) => definition)),
      log: silent,
      clock: this.clock,
      random: this.#random,
      loop: {
        ...systemLoop,
        immediate: (run) => {
          this.#moving += 1;
          systemLoop.immediate(() => {
            this.#moving -= 1;
            run();
          });
        },
      },
      executor: inProcess,
      codec: undefined,
      limits: {
        execution: defaultLimits,
        cache: { instances: 10_000, bytes: 1e9 },
        journal: defaultJournalLimits,
        activities: 1_000,
        admission: defaultAdmissionLimits,
        waiters: 100_000,
      },
      group: "default",
      shards: 256,
      node,
      lease: 10_000,
      publicationRetention: defaultPublicationRetention,
      deadOwners: () => [],
    });
  }

  /** The same store, as one that is reached over a network. */
  #around(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return async (...args: unknown[]) => {
          this.calls += 1;
          await this.#sleep(name === "commit" ? storeLatency.commit : storeLatency.other);
          return value.apply(target, args);
        };
      },
    });
  }

  #sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.clock.wakeAt(this.clock.now() + milliseconds, resolve));
  }
}
