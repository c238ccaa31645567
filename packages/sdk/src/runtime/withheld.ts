/** Facts of which the code does not hear for now, in order: while the run is paused, or parked. */
import type { Incoming } from "../model/history.ts";
import type { BufferedEvent } from "./event-buffer.ts";

type CancelFact = Extract<Incoming, { type: "CancelRequested" }>;
type UpdateFact = Extract<Incoming, { type: "UpdateRequested" }>;
/** A fact, and how the code hears of it. */
type Kept = { readonly fact: Incoming; readonly hear: () => void };

export class Withheld {
  paused = false;
  parked = false;
  #kept: Kept[] = [];

  /** Whether the code is to hear of nothing. */
  get holds(): boolean {
    return this.paused || this.parked;
  }

  keep(fact: Incoming, hear: () => void): void {
    this.#kept.push({ fact, hear });
  }

  /** Lets the code hear of the next one; false when there is none, or it is to hear of none. */
  hearNext(): boolean {
    if (this.holds) return false;
    const kept = this.#kept.shift();
    kept?.hear();
    return kept !== undefined;
  }

  /** The first request to cancel of which the code has not heard. */
  get cancel(): CancelFact | undefined {
    return this.#kept.map(({ fact }) => fact).find((fact) => fact.type === "CancelRequested");
  }

  get events(): BufferedEvent[] {
    return this.#kept.flatMap(({ fact }) => (fact.type === "EventReceived" ? [fact] : []));
  }

  /** Forgets all, and says which updates are never begun. */
  drop(): UpdateFact[] {
    return this.#kept.splice(0).flatMap(({ fact }) => (fact.type === "UpdateRequested" ? [fact] : []));
  }
}
