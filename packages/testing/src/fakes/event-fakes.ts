/**
 * Sends the events that are faked to the waits that open for them.
 *
 * 1. A wait is answered once, however often the engine that opened it crashes: what is to be sent belongs to the world outside.
 * 2. It is answered when it is durable, also when the engine that opened it never learns of that.
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
  readonly send: (id: string, event: string, payload: unknown, idempotencyKey: string) => Promise<void>;
  /** The test is wrong: a fake threw. */
  readonly fail: (error: Error) => void;
};

export class EventFakes {
  readonly #fakes: ReadonlyMap<string, AnyFake>;
  readonly #outside: Outside;
  readonly #answered = new Set<string>();
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
      for (const [effect, name] of openWaits(facts)) {
        const fake = this.#fakes.get(name);
        const key = `${run}/${effect}`;
        if (fake === undefined || this.#answered.has(key)) continue;
        this.#answered.add(key);
        this.#answer(fake, run, key).catch(this.#outside.fail);
      }
    }
  }

  async #answer(fake: AnyFake, run: string, key: string): Promise<void> {
    let id: string | undefined;
    while (id === undefined) {
      await this.#outside.connected();
      id = await this.#counted(this.#outside.idOf(run));
    }
    if (fake.after > 0) await this.#outside.sleep(fake.after);
    const call = { input: { instanceId: id }, attempt: fake.calls.length + 1, instanceId: id, idempotencyKey: key };
    const payload = await this.#counted(Promise.resolve(fake.answer(call, undefined)));
    if (payload === nothing) return;
    await this.#outside.send(id, fake.target, payload, `fake:${key}`).catch((error) => {
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

/** Effects and names of the waits that a turn leaves open. */
function openWaits(facts: readonly HistoryFact[]): ReadonlyMap<string, string> {
  const waits = new Map<string, string>();
  for (const fact of facts) {
    if (fact.type === "EventAwaited") waits.set(fact.effect, fact.name);
    else if (fact.type === "EventConsumed" || fact.type === "EffectCancelled") waits.delete(fact.effect);
  }
  return waits;
}
