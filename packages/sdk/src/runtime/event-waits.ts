/**
 * Waits for events, and the events that nobody has taken yet.
 *
 * 1. Events are kept per name in the order of their arrival, from the start of the run, and each is taken once.
 * 2. The wait that was opened first is asked first; one that does not want the event (its key, its `match`, its schema) leaves it to the next, and the last
 *    to the handler of the name.
 * 3. What was sent to the instance is for any wait of its name; what was published is for those with its very key, or without one as it has none, and for no
 *    handler.
 */
import { parse } from "../define/schema.ts";
import type { EventEffect } from "../effects/await-event.ts";
import type { CallSite } from "../effects/effect.ts";
import type { EffectId } from "../model/history.ts";
import { decodePayload } from "../model/payload.ts";
import { yesOrNo } from "./answer.ts";
import { lineOf } from "./call-site.ts";
import type { Commands } from "./commands.ts";
import { type BufferedEvent, EventBuffer, isPublished } from "./event-buffer.ts";
import type { Guarding } from "./guard.ts";
import type { Leaves } from "./leaf.ts";
import type { Logger } from "./log-line.ts";
import { fulfilled, type Outcome, rejected } from "./operation.ts";

export interface EventWaitsOwner extends Logger, Guarding {
  /** Whether a handler took an event that nothing waits for. */
  handled(event: BufferedEvent): boolean;
}

export class EventWaits {
  readonly #commands: Commands;
  readonly #leaves: Leaves;
  readonly #owner: EventWaitsOwner;
  readonly #buffer = new EventBuffer();

  constructor(commands: Commands, leaves: Leaves, owner: EventWaitsOwner) {
    this.#commands = commands;
    this.#leaves = leaves;
    this.#owner = owner;
  }

  /** An event arrived: the first wait that wants it gets it, else it is kept. */
  received(event: BufferedEvent): void {
    for (const leaf of this.#leaves.values()) {
      if (leaf.work.kind !== "event" || leaf.work.effect.event.name !== event.name) continue;
      const offer = this.#offer(leaf.work.effect, event);
      if (offer === undefined) continue;
      leaf.settle(this.#consume(leaf.id, event, offer, undefined));
      return;
    }
    if (isPublished(event) || !this.#owner.handled(event)) this.#buffer.add(event);
  }

  /** What nobody has taken. */
  unread(): BufferedEvent[] {
    return this.#buffer.all();
  }

  /** A handler was registered: it gets what was kept for it, in order. */
  offerKept(name: string): void {
    for (let from = 0; ; ) {
      let place = -1;
      const event = this.#buffer.take(name, (candidate) => {
        place += 1;
        return place >= from && !isPublished(candidate);
      });
      if (event === undefined) return;
      from = place;
      if (this.#owner.handled(event)) continue;
      this.#buffer.putBack(event, place);
      from = place + 1;
    }
  }

  /** What a new wait gets from the events that are kept; undefined when it has to wait. */
  takeKept(id: EffectId, effect: EventEffect<unknown>): Outcome | undefined {
    let offer: Outcome | undefined;
    const event = this.#buffer.take(effect.event.name, (candidate) => {
      offer = this.#offer(effect, candidate);
      return offer !== undefined;
    });
    return event === undefined || offer === undefined ? undefined : this.#consume(id, event, offer, effect.site);
  }

  /** What a wait makes of an event: its value, the error of its `match`, or nothing when it does not want it. */
  #offer(wait: EventEffect<unknown>, event: BufferedEvent): Outcome | undefined {
    if (isPublished(event) && event.key !== wait.key) return undefined;
    let value: unknown;
    try {
      value = parse(wait.event.schema, decodePayload(event.payload), `payload of event "${event.name}"`);
    } catch (error) {
      this.#owner.log("warn", `event "${event.name}" does not fit what the workflow awaits and stays in the buffer`, {
        event: event.name,
        error,
      });
      return undefined;
    }
    const { match } = wait;
    if (match === undefined) return fulfilled(value);
    try {
      const answer: unknown = this.#owner.guarded(() => match(value));
      return yesOrNo(answer, () => nameOfMatch(wait)) ? fulfilled(value) : undefined;
    } catch (error) {
      return rejected(error);
    }
  }

  /** Records that a wait took an event, with what its schema made of it, so that a replay sees the same value. */
  #consume(effect: EffectId, event: BufferedEvent, offer: Outcome, site: CallSite | undefined): Outcome {
    const consumed = { type: "EventConsumed", effect, message: event.message } as const;
    try {
      const value = offer.ok ? this.#commands.encode(offer.value, `payload of event "${event.name}"`) : event.payload;
      const command = this.#commands.record({ ...consumed, ...(value !== event.payload && { value }) }, site);
      return offer.ok ? fulfilled(decodePayload(command.value ?? event.payload)) : offer;
    } catch (error) {
      this.#commands.record(consumed, site);
      return rejected(error);
    }
  }
}

function nameOfMatch({ event, site }: EventEffect<unknown>): string {
  const line = lineOf(site);
  return `The \`match\` of awaitEvent(${event.name})${line === undefined ? "" : ` at ${line}`}`;
}
