/** Every publication that is kept. */
import type { Publication } from "../../engine/ports/store.ts";
import { topicOf } from "./wait-table.ts";

export type Published = Publication & {
  readonly position: number;
  /** How many runs waited for it. */
  reached: number;
};

export class PublicationLog {
  /** By tenant and id. */
  readonly #ids = new Map<string, Published>();
  /** Those with a key, by tenant and topic, each list by position. */
  readonly #topics = new Map<string, Published[]>();
  #last = 0;

  find(tenant: string, id: string): Published | undefined {
    return this.#ids.get(nameOf(tenant, id));
  }

  add(publication: Publication): Published {
    this.#last += 1;
    const published = { ...publication, position: this.#last, reached: 0 };
    const { tenant, id, name, key } = publication;
    this.#ids.set(nameOf(tenant, id), published);
    if (key === undefined) return published;
    const topic = nameOf(tenant, topicOf(name, key));
    const known = this.#topics.get(topic);
    if (known === undefined) this.#topics.set(topic, [published]);
    else known.push(published);
    return published;
  }

  /** Those of a topic after a position, the oldest first. */
  after(tenant: string, topic: string, position: number, limit: number): readonly Published[] {
    const known = this.#topics.get(nameOf(tenant, topic)) ?? [];
    const first = known.findIndex((each) => each.position > position);
    return first < 0 ? [] : known.slice(first, first + limit);
  }

  expire(before: number): void {
    for (const [name, { at }] of this.#ids) if (at < before) this.#ids.delete(name);
    for (const [topic, known] of this.#topics) {
      const kept = known.filter(({ at }) => at >= before);
      if (kept.length === 0) this.#topics.delete(topic);
      else if (kept.length < known.length) this.#topics.set(topic, kept);
    }
  }
}

function nameOf(tenant: string, rest: string): string {
  return `${tenant}\u001f${rest}`;
}
