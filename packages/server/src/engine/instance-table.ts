/**
 * The instances in memory: those at work, and the idle ones that are kept because their next event is cheaper then.
 *
 * 1. An idle instance may be dropped at any time: everything it knows is in history.
 * 2. The idle ones are bounded in number and in estimated bytes; the one that was used longest ago goes first.
 * 3. What the user's code keeps in its variables cannot be estimated: when memory is short, whatever the estimate says, the older half of them goes.
 */
import type { Instance } from "./instance.ts";

export type CacheLimits = {
  readonly instances: number;
  readonly bytes: number;
};

/** Generators, their fibers, maps and closures of one suspended run: about 6 KB measured, before history and the user's own state. */
const instanceBytes = 6_000;

/** To ask for the memory takes tens of microseconds: it is asked once in so many times that an instance rests. */
const restsBetweenLooks = 64;

const idKey = (tenant: string, id: string) => `${tenant}\u0000${id}`;

export class InstanceTable {
  readonly #limits: CacheLimits;
  readonly #memoryIsShort: () => boolean;
  readonly #byRun = new Map<string, Instance>();
  readonly #openById = new Map<string, Instance>();
  /** Idle instances, least recently used first, with what they were counted for. */
  readonly #idle = new Map<Instance, number>();
  #idleBytes = 0;
  #evictions = 0;
  #rests = 0;

  constructor(limits: CacheLimits, memoryIsShort: () => boolean = () => false) {
    this.#limits = limits;
    this.#memoryIsShort = memoryIsShort;
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
    const most = this.#mostIdle();
    for (const oldest of this.#idle.keys()) {
      if (this.#idle.size <= most && this.#idleBytes <= this.#limits.bytes) return;
      this.remove(oldest);
      this.#evictions += 1;
    }
  }

  #mostIdle(): number {
    this.#rests = (this.#rests + 1) % restsBetweenLooks;
    const short = this.#rests === 0 && this.#memoryIsShort();
    return short ? Math.min(this.#limits.instances, Math.floor(this.#idle.size / 2)) : this.#limits.instances;
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
