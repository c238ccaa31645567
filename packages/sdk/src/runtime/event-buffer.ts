/** Events that arrived and that nothing has taken yet: first in, first out per name, each taken once. */
import type { CarriedEvent } from "../model/history.ts";

export type BufferedEvent = CarriedEvent;

/** Whether it was published, and not sent to the instance. */
export const isPublished = (event: BufferedEvent): boolean => event.position !== undefined;

export class EventBuffer {
  #byName: Map<string, BufferedEvent[]> | undefined;

  add(event: BufferedEvent): void {
    this.#byName ??= new Map();
    const queue = this.#byName.get(event.name);
    if (queue === undefined) this.#byName.set(event.name, [event]);
    else queue.push(event);
  }

  /** All that nobody has taken, name by name. */
  all(): BufferedEvent[] {
    return [...(this.#byName?.values() ?? [])].flat();
  }

  /** Puts an event back at its place in the line. */
  putBack(event: BufferedEvent, place: number): void {
    const queue = this.#byName?.get(event.name);
    if (queue === undefined) this.add(event);
    else queue.splice(place, 0, event);
  }

  /** Takes out the first event of the name that `accepts` lets through. */
  take(name: string, accepts: (event: BufferedEvent) => boolean): BufferedEvent | undefined {
    const queue = this.#byName?.get(name);
    if (queue === undefined) return undefined;
    const index = queue.findIndex(accepts);
    if (index < 0) return undefined;
    const [event] = queue.splice(index, 1);
    if (queue.length === 0) this.#byName?.delete(name);
    return event;
  }
}
