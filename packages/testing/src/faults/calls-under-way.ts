/**
 * What is under way between an engine and its store or codec, each call in an asynchronous context of its own.
 *
 * 1. A call that waits for virtual time does not count as moving: time may jump for it.
 * 2. Each knows since when it has been under way, in real time, so that one that hangs can be named.
 */
import { AsyncLocalStorage } from "node:async_hooks";

type CallUnderWay = {
  readonly what: string;
  /** By the clock of the machine, in milliseconds. */
  readonly since: number;
  sleeping: number;
  readonly owner: CallsUnderWay;
};

/** Before a guard takes its place. */
const realTime = performance.now.bind(performance);

const current = new AsyncLocalStorage<CallUnderWay>();

export class CallsUnderWay {
  readonly #calls = new Set<CallUnderWay>();
  readonly #changed: () => void;
  #asleep = 0;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Calls that move. */
  get moving(): number {
    return this.#calls.size - this.#asleep;
  }

  /** Whether one of them waits for virtual time. */
  get sleeping(): boolean {
    return this.#asleep > 0;
  }

  async run<T>(what: string, work: () => Promise<T>): Promise<T> {
    const call: CallUnderWay = { what, since: realTime(), sleeping: 0, owner: this };
    this.#calls.add(call);
    this.#changed();
    try {
      return await current.run(call, work);
    } finally {
      this.#calls.delete(call);
      if (call.sleeping > 0) this.#asleep -= 1;
      this.#changed();
    }
  }

  /** Those that have been under way since before a moment, for people. */
  since(moment: number): string[] {
    return [...this.#calls].filter(({ since }) => since <= moment).map(({ what }) => what);
  }

  fellAsleep(call: CallUnderWay, by: 1 | -1): void {
    const slept = call.sleeping > 0;
    call.sleeping += by;
    if (!this.#calls.has(call) || slept === call.sleeping > 0) return;
    this.#asleep += by;
    this.#changed();
  }
}

/** Awaits virtual time within a call: it does not count as moving until then. */
export async function sleepingCall(passed: Promise<void>): Promise<void> {
  const call = current.getStore();
  call?.owner.fellAsleep(call, 1);
  await passed;
  call?.owner.fellAsleep(call, -1);
}
