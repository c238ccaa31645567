/**
 * The instances in memory: those at work, and the idle ones that are kept because their next event is cheaper then.
 *
 * 1. An idle instance may be dropped at any time: everything it knows is in history.
 * 2. The idle ones are bounded in number and in estimated bytes; the one that was used longest ago goes first.
 */
import type { Instance } from "./instance.ts";

export type CacheLimits = {
  readonly instances: number;
  readonly bytes: number;
};

/** Generators, their fibers, maps and closures of one suspended run: about 6 KB measured, before history and the user's own state. */
const instanceBytes = 6_000;

const idKey = (tenant: string, id: string) => `${tenant}\u0000${id}`;

export class InstanceTable {
  readonly #limits: CacheLimits;
  readonly #byRun = new Map<string, Instance>();
  readonly #openById = new Map<string, Instance>();
  /** Idle instances, least recently used first, with what they were counted for. */
  readonly #idle = new Map<Instance, number>();
  #idleBytes = 0;
  #evictions = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byRun.size;
  }

  get evictions(): number {
    return this.#evictions;
  }

  get(run: string): Instance | undefined {
    return this.#byRun.get(run);
  }

  /** The open instance of an id, when it is in memory. */
  open(tenant: string, id: string): Instance | undefined {
    return this.#openById.get(idKey(tenant, id));
  }

  values(): IterableIterator<Instance> {
    return this.#byRun.values();
  }

  add(instance: Instance): void {
    const { run, tenant, id } = instance.identity;
    this.#byRun.set(run, instance);
    this.#openById.set(idKey(tenant, id), instance);
  }

  /** The instance has work again. */
  busy(instance: Instance): void {
    const bytes = this.#idle.get(instance);
    if (bytes === undefined) return;
    this.#idle.delete(instance);
    this.#idleBytes -= bytes;
  }

  /** The instance rests; others may have to go. */
  rest(instance: Instance): void {
    this.busy(instance);
    const bytes = instanceBytes + 2 * instance.weight;
    this.#idle.set(instance, bytes);
    this.#idleBytes += bytes;
    while (this.#idle.size > this.#limits.instances || this.#idleBytes > this.#limits.bytes) {
      const [oldest] = this.#idle.keys();
      if (oldest === undefined) return;
      this.remove(oldest);
      this.#evictions += 1;
    }
  }

  remove(instance: Instance): void {
    this.busy(instance);
    instance.phase = "dropped";
    const { run, tenant, id } = instance.identity;
    if (this.#byRun.get(run) === instance) this.#byRun.delete(run);
    const key = idKey(tenant, id);
    if (this.#openById.get(key) === instance) this.#openById.delete(key);
  }

  /** Drops every idle instance. */
  evictIdle(): void {
    for (const instance of [...this.#idle.keys()]) this.remove(instance);
  }

  clear(): void {
    for (const instance of [...this.#byRun.values()]) this.remove(instance);
  }
}
