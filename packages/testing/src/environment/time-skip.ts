/**
 * When virtual time moves.
 *
 * 1. By itself it jumps, to whatever is due next, only while somebody waits for something of the environment, nothing moves, and no attempt of an
 *    activity runs: an attempt that sleeps in virtual time does not count.
 * 2. `advance` moves it whatever runs.
 * 3. Where neither time nor anything under way can help any more, those who wait are rejected at once and told why.
 * 4. Waiting for something real (the I/O of an activity) costs no CPU and keeps no process alive: when nothing is left that could end it, the process
 *    ends, and says on stderr what was waited for.
 */
import { Changes } from "./changes.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** Whoever waits; `met` is asked after everything that moved. */
export type Waiter = {
  readonly met?: () => boolean;
  readonly resolve?: () => void;
  readonly reject: (error: Error) => void;
  /** Why it can wait for ever, told when nothing can happen any more. */
  readonly explain: () => Promise<Error>;
  /** What it waits for, for the last words of a process. */
  readonly what: string;
};

export type Surroundings = {
  readonly clock: VirtualClock;
  /** Whether a turn, an answer of the store, or a call is on its way. */
  readonly moving: () => boolean;
  /** Attempts that hold time. */
  readonly attempts: () => number;
  /** When the next thing of the engine falls due; undefined when nothing ever will. */
  readonly due: () => Promise<number | undefined>;
  readonly running: () => string[];
};

/** Macrotasks without any movement, after which nothing will move by itself. */
const stillness = 3;

export class TimeSkip {
  readonly changes = new Changes();
  readonly #surroundings: Surroundings;
  readonly #waiters = new Set<Waiter>();
  /** Wake-ups of the environment itself, beside those of the engine. */
  readonly #alarms = new Set<{ readonly at: number }>();
  #driving = false;
  #steering = 0;
  #automatic: boolean;

  constructor(surroundings: Surroundings, automatic: boolean) {
    this.#surroundings = surroundings;
    this.#automatic = automatic;
  }

  get automatic(): boolean {
    return this.#automatic;
  }

  set automatic(automatic: boolean) {
    this.#automatic = automatic;
    this.changes.tell();
  }

  /** Moves time on and lets everything that falls due on the way happen at its time. */
  async advanceTo(target: number): Promise<void> {
    const { clock } = this.#surroundings;
    await this.steer(async () => {
      for (;;) {
        await this.settle();
        const next = await this.next();
        if (next === undefined || next > target) break;
        clock.advanceTo(next);
      }
      clock.advanceTo(target);
      await this.settle();
    });
  }

  /** Resolves when nothing moves: everything waits for time, for a message from outside, or for an attempt that is running. */
  async settle(): Promise<void> {
    for (let still = 0; still < stillness; ) {
      await macrotask();
      still = this.#surroundings.moving() || this.#surroundings.clock.due ? 0 : still + 1;
    }
  }

  /** Resolves at a time, when it comes. */
  async alarm(at: number): Promise<void> {
    const alarm = { at };
    this.#alarms.add(alarm);
    await new Promise<void>((resolve) => this.#surroundings.clock.wakeAt(at, resolve));
    this.#alarms.delete(alarm);
    this.changes.tell();
  }

  /** Runs `work` while time does not jump by itself. */
  async steer<T>(work: () => Promise<T>): Promise<T> {
    this.#steering += 1;
    try {
      return await work();
    } finally {
      this.#steering -= 1;
      this.changes.tell();
    }
  }

  /** Awaits a step of the engine's own life, moving time where it waits for it. */
  async through<T>(step: Promise<T>): Promise<T> {
    const { clock } = this.#surroundings;
    let over = false;
    const end = () => {
      over = true;
    };
    step.then(end, end);
    await this.steer(async () => {
      while (!over) {
        await this.settle();
        const { next } = clock;
        if (!over && next !== undefined) clock.advanceTo(next);
      }
    });
    return step;
  }

  /** Lets time jump until the wait is over; the function that it returns ends it. */
  wait(waiter: Waiter): () => void {
    this.#waiters.add(waiter);
    this.changes.tell();
    this.#drive();
    return () => {
      this.#waiters.delete(waiter);
      this.changes.tell();
    };
  }

  /** Rejects everybody who waits. */
  fail(error: Error): boolean {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.reject(error);
    this.changes.tell();
    return waiters.length > 0;
  }

  /** Nobody is told anything any more. */
  stop(): void {
    this.#waiters.clear();
    this.changes.tell();
  }

  #drive(): void {
    if (this.#driving) return;
    this.#driving = true;
    waiting.add(this);
    const work = async () => {
      while (this.#waiters.size > 0) {
        const changed = this.changes.next;
        await this.settle();
        this.#meet();
        if (this.#waiters.size === 0) break;
        if (this.#held) {
          await changed;
          continue;
        }
        const next = await this.next();
        if (this.#waiters.size === 0 || this.#held || this.#surroundings.moving()) continue;
        if (next === undefined) await this.#giveUp();
        else this.#surroundings.clock.advanceTo(next);
      }
    };
    void work().finally(() => {
      this.#driving = false;
      waiting.delete(this);
    });
  }

  /** Whether time stands for a reason other than that everything has happened. */
  get #held(): boolean {
    return !this.#automatic || this.#steering > 0 || this.#surroundings.attempts() > 0;
  }

  #meet(): void {
    for (const waiter of [...this.#waiters]) {
      try {
        if (waiter.met?.() !== true) continue;
        this.#waiters.delete(waiter);
        waiter.resolve?.();
      } catch (error) {
        this.#waiters.delete(waiter);
        waiter.reject(error as Error);
      }
    }
  }

  /** When the next thing falls due; undefined when nothing ever will. */
  async next(): Promise<number | undefined> {
    const due = await this.#surroundings.due();
    let soonest = due ?? Number.POSITIVE_INFINITY;
    for (const { at } of this.#alarms) soonest = Math.min(soonest, at);
    return soonest === Number.POSITIVE_INFINITY ? undefined : soonest;
  }

  /** Nothing can happen any more: those who wait are told why. */
  async #giveUp(): Promise<void> {
    for (const waiter of [...this.#waiters]) {
      this.#waiters.delete(waiter);
      waiter.reject(await waiter.explain().catch((error: Error) => error));
    }
  }

  /** Why it waits although nothing in the process can end it. */
  lastWords(): string {
    const awaited = [...this.#waiters].map((waiter) => waiter.what).join(", ");
    const running = this.#surroundings.running();
    const reason =
      running.length > 0
        ? `${running.join(", ")} ${running.length === 1 ? "is" : "are"} running, and nothing in this process can end ${running.length === 1 ? "it" : "them"}`
        : "time is moved by hand here, and nobody moves it on";
    return `The test waits for ${awaited || "nothing"}: ${reason}.`;
  }
}

const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Those that wait, for the last words of the process. */
const waiting = new Set<TimeSkip>();

process.on("beforeExit", () => {
  for (const skip of waiting) process.stderr.write(`${skip.lastWords()}\n`);
  waiting.clear();
});
