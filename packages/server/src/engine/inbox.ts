/**
 * The durable inbox, read: what lies in it is delivered to its runs.
 *
 * 1. A store that does not answer is asked again, as long as this node owns its shards: the next owner reads the inbox when it takes them.
 * 2. A message may be delivered more than once: it is known then.
 * 3. What other nodes put into it is found by looking: at what is new, and from time to time at all of it. Each database is looked at by itself.
 * 4. Every read begins with the oldest message, so that a run never hears a publication before an older one that it found when it looked back.
 */
import type { Engine } from "./engine.ts";
import { pause } from "./pause.ts";
import { placesOf, shardsAt } from "./places.ts";
import { type RunAddress, StoreUnavailableError } from "./ports/store.ts";
import { deliverInbox, eachMessage } from "./recovery.ts";

const pageMessages = 500;
const retryMilliseconds = 250;
/** A message becomes visible so long after others with higher positions at most, in milliseconds. */
const latestArrival = 30_000;
/** How often all of it is looked at. */
const sweepPause = 600_000;

type Seen = {
  /** Positions that were delivered by a look, of those that the next one comes across again. */
  readonly delivered: Set<number>;
  /** Which positions had been seen when. */
  readonly marks: { readonly at: number; readonly position: number }[];
};

export class Inbox {
  readonly #engine: Engine;
  #sweeping = false;
  #again = false;
  #looking = false;
  #lookAgain = false;
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** What looks have seen, by database. */
  #seen = new Map<number, Seen>();
  /** Runs whose messages are being read, and whether they are to be read once more then. */
  readonly #reads = new Map<string, boolean>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Delivers the messages of all shards. What is asked for while a sweep is under way makes one more. */
  sweep(): void {
    if (this.#sweeping) {
      this.#again = true;
      return;
    }
    this.#sweeping = true;
    const { store } = this.#engine.options;
    void Promise.all(placesOf(store).map((place) => this.#patiently(() => deliverInbox(this.#engine, place)))).then(() => {
      this.#sweeping = false;
      if (!this.#again) return;
      this.#again = false;
      this.sweep();
    });
  }

  /** Delivers what other nodes have put into it since the last look. */
  look(): void {
    const { ownership, closing, options } = this.#engine;
    if ((ownership.members.alone && !options.shared) || closing || this.#sweeping) return;
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    const now = this.#engine.now();
    if (this.#sweptAt + sweepPause <= now) {
      this.#sweptAt = now;
      this.#seen.clear();
    }
    this.#looking = true;
    const places = placesOf(options.store);
    void Promise.all(places.map((place) => this.#patiently(() => this.#look(place, now)))).then(() => {
      this.#looking = false;
      if (!this.#lookAgain) return;
      this.#lookAgain = false;
      this.look();
    });
  }

  async #look(place: number, now: number): Promise<void> {
    const seen = this.#seen.get(place) ?? { delivered: new Set(), marks: [] };
    this.#seen.set(place, seen);
    const { delivered, marks } = seen;
    while (marks[1] !== undefined && marks[1].at <= now - latestArrival) marks.shift();
    const [mark] = marks;
    const from = mark !== undefined && mark.at <= now - latestArrival ? mark.position : 0;
    for (const position of delivered) if (position <= from) delivered.delete(position);
    let last = from;
    const { ownership, options } = this.#engine;
    await eachMessage(
      this.#engine,
      () => shardsAt(options.store, place, ownership.shards),
      async (message) => {
        last = message.position;
        if (delivered.has(last)) return;
        delivered.add(last);
        await this.#engine.deliverMessage(message);
      },
      from,
    );
    marks.push({ at: now, position: last });
  }

  /** Delivers the messages of one run. What is asked for while they are being read makes one more read. */
  deliver(key: RunAddress): void {
    const reader = `${key.tenant}/${key.run}`;
    const reading = this.#reads.has(reader);
    this.#reads.set(reader, reading);
    if (reading) return;
    void this.#patiently(() => this.#deliver(key)).then(() => {
      const again = this.#reads.get(reader);
      this.#reads.delete(reader);
      if (again) this.deliver(key);
    });
  }

  async #deliver(key: RunAddress): Promise<void> {
    for (let after = 0; ; ) {
      const page = await this.#engine.options.store.readInbox(key, { after, limit: pageMessages });
      for (const message of page) await this.#engine.deliverMessage(message);
      const last = page[page.length - 1];
      if (last === undefined || page.length < pageMessages) return;
      after = last.position;
    }
  }

  async #patiently(read: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#engine.options;
    while (!this.#engine.closing && this.#engine.ownership.holds) {
      try {
        await read();
        return;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) {
          log.warn("the inbox could not be read; its messages are delivered after the next outage or start", { error });
          return;
        }
        await pause(clock, retryMilliseconds);
      }
    }
  }
}
