/**
 * Says the events that are faked to the waits that open for them.
 *
 * 1. A wait is answered once, however often the engine that opened it crashes: what is to be sent belongs to the world outside.
 * 2. It is answered when it is durable, also when the engine that opened it never learns of that.
 * 3. A wait without a key is sent its event. For one with a key the event is published: once for the first wait of each run for this event and key, once for
 *    the second of each, and so on, for they all read the same publications.
 */
import { ApiError } from "@wovyr/sdk";
import type { HistoryFact } from "@wovyr/sdk/internal";
import type { Flush, FlushOutcome } from "@wovyr/server/internal";
import { type AnyFake, nothing } from "./fake.ts";

export type Outside = {
  /** Resolves when there is an engine. */
  readonly connected: () => Promise<void>;
  /** Undefined as well when the engine has gone meanwhile. */
  readonly idOf: (run: string) => Promise<string | undefined>;
  /** Hears of every end of what counted as moving. */
  readonly moved: () => void;
  /** Resolves when so many milliseconds of virtual time have passed. */
  readonly sleep: (milliseconds: number) => Promise<void>;
  /** Sends now or, when a conductor is there, when it says so. */
  readonly send: (id: string, event: string, payload: unknown, options: { readonly idempotencyKey: string }) => Promise<void>;
  /** The same, to everybody who waits with the key. */
  readonly publish: (event: string, payload: unknown, options: { readonly key: string; readonly idempotencyKey: string }) => Promise<void>;
  /** The test is wrong: a fake threw. */
  readonly fail: (error: Error) => void;
};

export class EventFakes {
  readonly #fakes: ReadonlyMap<string, AnyFake>;
  readonly #outside: Outside;
  readonly #answered = new Set<string>();
  /** How many waits of a run for an event and a key have been seen. */
  readonly #read = new Map<string, number>();
  #moving = 0;

  constructor(fakes: ReadonlyMap<string, AnyFake>, outside: Outside) {
    this.#fakes = fakes;
    this.#outside = outside;
  }

  /** Answers on their way; those that wait for their time do not count. */
  get moving(): number {
    return this.#moving;
  }

  /** Looks at turns that have become durable. */
  committed(flush: Flush, { done }: FlushOutcome): void {
    if (this.#fakes.size === 0) return;
    for (const { run, events } of flush.turns) {
      if (!done.has(run)) continue;
      const facts = JSON.parse(events) as readonly HistoryFact[];
      for (const [effect, wait] of openWaits(facts)) {
        const fake = this.#fakes.get(wait.name);
        if (fake === undefined || !this.#isFirst(`${run}/${effect}`)) continue;
        const said = wait.key === undefined ? `${run}/${effect}` : this.#publicationFor(run, wait.name, wait.key);
        if (wait.key === undefined || this.#isFirst(said)) this.#answer(fake, run, said, wait.key).catch(this.#outside.fail);
      }
    }
  }

  #isFirst(key: string): boolean {
    if (this.#answered.has(key)) return false;
    this.#answered.add(key);
    return true;
  }

  /** Which publication the next wait of a run for an event and a key is for. */
  #publicationFor(run: string, name: string, key: string): string {
    const reader = JSON.stringify([run, name, key]);
    const number = (this.#read.get(reader) ?? 0) + 1;
    this.#read.set(reader, number);
    return `${name}/${encodeURIComponent(key)}/${number}`;
  }

  async #answer(fake: AnyFake, run: string, said: string, key: string | undefined): Promise<void> {
    let id: string | undefined;
    while (id === undefined) {
      await this.#outside.connected();
      id = await this.#counted(this.#outside.idOf(run));
    }
    if (fake.after > 0) await this.#outside.sleep(fake.after);
    const input = { instanceId: id, ...(key !== undefined && { key }) };
    const call = { input, attempt: fake.calls.length + 1, instanceId: id, idempotencyKey: said };
    const payload = await this.#counted(Promise.resolve(fake.answer(call, undefined)));
    if (payload === nothing) return;
    const idempotencyKey = `fake:${said}`;
    if (key !== undefined) {
      await this.#outside.publish(fake.target, payload, { key, idempotencyKey });
      return;
    }
    await this.#outside.send(id, fake.target, payload, { idempotencyKey }).catch((error) => {
      if (!(error instanceof ApiError && error.code === "INSTANCE_CLOSED")) throw error;
    });
  }

  async #counted<T>(work: Promise<T>): Promise<T> {
    this.#moving += 1;
    try {
      return await work;
    } finally {
      this.#moving -= 1;
      this.#outside.moved();
    }
  }
}

type Wait = { readonly name: string; readonly key?: string };

/** The waits that a turn leaves open, by effect. */
function openWaits(facts: readonly HistoryFact[]): ReadonlyMap<string, Wait> {
  const waits = new Map<string, Wait>();
  for (const fact of facts) {
    if (fact.type === "EventAwaited") waits.set(fact.effect, fact);
    else if (fact.type === "EventConsumed" || fact.type === "EffectCancelled") waits.delete(fact.effect);
  }
  return waits;
}
