/** Which runs wait for which publications. */
import type { EffectKey, InstanceKey } from "../../engine/ports/store.ts";
import { compareText } from "../text-order.ts";
import { EffectRows } from "./effect-rows.ts";

export type Wait = EffectKey & { readonly shard: number; readonly topic: string };

export class WaitTable {
  readonly #rows = new EffectRows<Wait>();
  /** By tenant and topic. */
  readonly #topics = new Map<string, Set<Wait>>();

  set(wait: Wait): void {
    this.remove(wait);
    this.#rows.set(wait);
    const name = topicName(wait);
    const waits = this.#topics.get(name);
    if (waits === undefined) this.#topics.set(name, new Set([wait]));
    else waits.add(wait);
  }

  remove(key: EffectKey): void {
    const wait = this.#rows.get(key);
    if (wait === undefined) return;
    this.#rows.remove(wait);
    const name = topicName(wait);
    const waits = this.#topics.get(name);
    if (waits?.delete(wait) && waits.size === 0) this.#topics.delete(name);
  }

  removeRun(key: InstanceKey): void {
    for (const wait of this.#rows.ofRun(key)) this.remove(wait);
  }

  /** The runs that wait for a topic, each once, by run. */
  runsFor(tenant: string, topic: string): readonly { readonly run: string; readonly shard: number }[] {
    const waits = this.#topics.get(topicName({ tenant, topic })) ?? [];
    const shards = new Map([...waits].map(({ run, shard }) => [run, shard]));
    return [...shards].map(([run, shard]) => ({ run, shard })).sort((a, b) => compareText(a.run, b.run));
  }
}

/** What stands for a name and a key, or a name without a key: neither can hold U+001F. */
export function topicOf(name: string, key: string | undefined): string {
  return key === undefined ? name : `${name}\u001f${key}`;
}

/** A topic may hold the separator once, a tenant never. */
function topicName({ tenant, topic }: { readonly tenant: string; readonly topic: string }): string {
  return `${tenant}\u001f${topic}`;
}
