/**
 * The durable inbox, read: what lies in it is delivered to its runs.
 *
 * 1. A store that does not answer is asked again, as long as this node owns its shards: the next owner reads the inbox when it takes them.
 * 2. A message may be delivered more than once: it is known then.
 * 3. Every read begins with the oldest message, so that a run never hears a publication before an older one that it found when it looked back.
 */
import type { Engine } from "./engine.ts";
import { type InstanceKey, StoreUnavailableError } from "./ports/store.ts";
import { deliverInbox } from "./recovery.ts";

const pageMessages = 500;
const retryMilliseconds = 250;

export class Inbox {
  readonly #engine: Engine;
  #sweeping = false;
  #again = false;
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
    void this.#patiently(() => deliverInbox(this.#engine)).then(() => {
      this.#sweeping = false;
      if (!this.#again) return;
      this.#again = false;
      this.sweep();
    });
  }

  /** Delivers the messages of one run. What is asked for while they are being read makes one more read. */
  deliver(key: InstanceKey): void {
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

  async #deliver(key: InstanceKey): Promise<void> {
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
        await new Promise<void>((resolve) => void clock.wakeAt(clock.now() + retryMilliseconds, resolve));
      }
    }
  }
}
