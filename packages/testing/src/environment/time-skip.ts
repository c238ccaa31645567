/**
 * When virtual time moves.
 *
 * 1. By itself it jumps, to whatever is due next, only while somebody waits for something of the environment, nothing moves, and no attempt of an
 *    activity runs: an attempt that sleeps in virtual time does not count.
 * 2. `advance` moves it whatever runs.
 * 3. Where neither time nor anything under way can help any more, those who wait are rejected at once and told why. So are they when something real takes
 *    longer than patience lasts, and when the store does nothing but fail.
 * 4. Waiting for something real (the I/O of an activity) costs no CPU and keeps no process alive: when nothing is left that could end it, the process
 *    ends, and says on stderr what was waited for (last-words.ts).
 * 5. A jump costs the same however many wait: only conditions are asked.
 */
import { WovyrError } from "@wovyr/sdk";
import { Changes } from "./changes.ts";
import { disposed, disposedWhile } from "./disposal.ts";
import { type Speaker, speaks } from "./last-words.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** Whoever waits. */
export type Waiter = {
  readonly reject: (error: Error) => void;
  /** What it waits for, for people. */
  readonly what: string;
  /** Why it can wait for ever, told when nothing can happen any more. */
  readonly explain: () => Promise<Error>;
};

/** A wait for what is asked after everything that moved; one that answers with a promise is asked again when it has been kept. */
export type Condition = Waiter & { readonly met: () => boolean | Promise<boolean>; readonly resolve: () => void };

/** Whoever waits without making time jump. */
export type Attendant = Pick<Waiter, "reject" | "what">;

export type Surroundings = {
  readonly clock: VirtualClock;
  /** Whether a turn, an answer of the store, or a call is on its way. */
  readonly moving: () => boolean;
  /** Attempts that hold time. */
  readonly attempts: () => number;
  /** Why time stands although nothing runs: the engine is down, its store was disconnected. */
  readonly stands: () => string | undefined;
  /** Whether there is no engine, and none is coming. */
  readonly down: () => boolean;
  /** When the next thing of the engine falls due; undefined when nothing ever will. */
  readonly due: () => Promise<number | undefined>;
  /** Why it is in vain to wait any longer. */
  readonly inVain: () => string | undefined;
  /** What runs or is under way since before a moment of real time. */
  readonly hanging: (moment: number) => readonly string[];
  /** Takes an error for the environment's own. */
  readonly claim: <E extends Error>(error: E) => E;
};

/** Macrotasks without any movement, after which nothing will move by itself. */
const stillness = 3;
/** Macrotasks after which what moves is waited for, and not asked any more. */
const spins = 50;
/** Milliseconds between two answers of an asynchronous condition while something real is waited for. */
const pollMilliseconds = 10;
/** Real milliseconds that a test has to start another engine while it waits for something. */
const downMilliseconds = 2_000;
const hour = 3_600_000;

// A test may replace the timers of the process.
const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis;

export class TimeSkip implements Speaker {
  readonly changes = new Changes();
  readonly #surroundings: Surroundings;
  readonly #waiters = new Set<Waiter>();
  readonly #conditions = new Set<Condition>();
  readonly #attendants = new Set<Attendant>();
  /** Wake-ups of the environment itself, beside those of the engine. */
  readonly #alarms = new Set<{ readonly at: number }>();
  /** Milliseconds of real time. */
  readonly #patience: number;
  #driving = false;
  #steering = 0;
  #automatic: boolean;
  #ended = false;
  /** Whether a condition has come that was never asked. */
  #unasked = false;
  /** How many have begun to wait. */
  #joined = 0;
  #watch: NodeJS.Timeout | undefined;
  /** When somebody last began to wait, or time was last moved. */
  #touched = 0;
  /** Since when somebody has been waiting. */
  #waiting = 0;

  constructor(surroundings: Surroundings, automatic: boolean, patience: number) {
    this.#surroundings = surroundings;
    this.#automatic = automatic;
    this.#patience = patience;
  }

  get automatic(): boolean {
    return this.#automatic;
  }

  set automatic(automatic: boolean) {
    this.#automatic = automatic;
    this.#touched = realTime();
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
    const { clock, moving } = this.#surroundings;
    let restless = 0;
    for (let still = 0; still < stillness; ) {
      await macrotask();
      if (this.#ended) throw disposed();
      if (!moving() && !clock.due) {
        still += 1;
        continue;
      }
      still = 0;
      restless += 1;
      if (restless < spins || clock.due) continue;
      const changed = this.changes.next;
      if (moving()) await changed;
    }
  }

  /** Resolves at a time, when it comes. */
  async alarm(at: number): Promise<void> {
    if (this.#ended) throw disposed();
    const alarm = { at };
    this.#alarms.add(alarm);
    this.changes.tell();
    await new Promise<void>((resolve) => this.#surroundings.clock.wakeAt(at, resolve));
    this.#alarms.delete(alarm);
    this.changes.tell();
  }

  /** Runs `work` while time does not jump by itself. */
  async steer<T>(work: () => Promise<T>): Promise<T> {
    this.#steering += 1;
    this.#touched = realTime();
    try {
      return await work();
    } finally {
      this.#steering -= 1;
      this.#touched = realTime();
      this.changes.tell();
    }
  }

  /** Awaits a step of the engine's own life, moving time where it waits for it: so many milliseconds at most. */
  async through<T>(step: Promise<T>, longest: number, why: () => string): Promise<T> {
    const { clock } = this.#surroundings;
    const latest = clock.now() + Math.max(longest, hour);
    let over = false;
    const end = () => {
      over = true;
      this.changes.tell();
    };
    step.then(end, end);
    await this.steer(async () => {
      while (!over) {
        await this.settle();
        const { next } = clock;
        if (over) break;
        if (next === undefined) await this.changes.next;
        else if (next > latest) throw this.#surroundings.claim(new WovyrError(why(), { code: "TIMED_OUT" }));
        else clock.advanceTo(next);
      }
    });
    return step;
  }

  /** Lets time jump until the wait is over; the function that it returns ends it. */
  wait(waiter: Waiter): () => void {
    return this.#join(this.#waiters, waiter, () => this.#drive());
  }

  /** Lets time jump until the condition holds. */
  until(condition: Condition): void {
    this.#join(this.#waiters, condition, () => {
      this.#conditions.add(condition);
      this.#unasked = true;
      this.#drive();
    });
  }

  /** Notes that somebody waits, without moving time for it; the function that it returns ends it. */
  attend(attendant: Attendant): () => void {
    return this.#join(this.#attendants, attendant, () => {});
  }

  #join<W extends Attendant>(all: Set<W>, waiter: W, joined: () => void): () => void {
    if (this.#ended) {
      waiter.reject(this.#surroundings.claim(disposed()));
      return () => {};
    }
    all.add(waiter);
    this.#joined += 1;
    this.#touched = realTime();
    this.#watchOver();
    this.changes.tell();
    joined();
    return () => {
      all.delete(waiter);
      this.#watchOver();
      this.changes.tell();
    };
  }

  /** Rejects everybody who waits; false when nobody does. */
  fail(error: Error): boolean {
    this.#surroundings.claim(error);
    return this.#rejectAll(() => error);
  }

  /** It is over: whoever waits is told so, and so is whoever begins to. */
  end(): void {
    this.#ended = true;
    this.#rejectAll(({ what }) => this.#surroundings.claim(disposedWhile(what)));
  }

  get ended(): boolean {
    return this.#ended;
  }

  #rejectAll(errorOf: (waiter: Attendant) => Error): boolean {
    const all = [...this.#waiters, ...this.#attendants];
    this.#waiters.clear();
    this.#conditions.clear();
    this.#attendants.clear();
    for (const waiter of all) waiter.reject(errorOf(waiter));
    this.#watchOver();
    this.changes.tell();
    return all.length > 0;
  }

  #drive(): void {
    if (this.#driving) return;
    this.#driving = true;
    void this.#work();
  }

  /** Ends in the very moment in which nobody waits: whoever waits next begins anew. */
  async #work(): Promise<void> {
    try {
      while (this.#waiters.size > 0) await this.#step();
    } catch (error) {
      if (!this.#ended) this.fail(error as Error);
    }
    this.#driving = false;
    if (this.#waiters.size > 0) this.#drive();
  }

  async #step(): Promise<void> {
    const changed = this.changes.next;
    await this.settle();
    const asked = this.#ask();
    if (asked.length > 0) await this.#answered(asked);
    if (this.#waiters.size === 0 || this.#unasked) return;
    const joined = this.#joined;
    if (this.#surroundings.down() && this.#automatic) return this.#awaitEngine();
    if (this.#held) {
      await (asked.length === 0 ? changed : Promise.race([changed, pause()]));
      return;
    }
    const next = await this.next();
    if (this.#waiters.size === 0 || this.#joined !== joined || this.#held || this.#surroundings.moving()) return;
    const inVain = this.#surroundings.inVain();
    if (inVain !== undefined) this.fail(new WovyrError(this.#about(inVain), { code: "TIMED_OUT" }));
    else if (next === undefined) await this.#giveUp();
    else this.#surroundings.clock.advanceTo(next);
  }

  /** Gives the test a moment to start an engine. */
  async #awaitEngine(): Promise<void> {
    let late = false;
    const timer = setTimeout(
      () => {
        late = true;
        this.changes.tell();
      },
      Math.min(downMilliseconds, this.#patience),
    );
    while (!late && this.#waiters.size > 0 && this.#surroundings.down()) await this.changes.next;
    clearTimeout(timer);
    const { stands, down } = this.#surroundings;
    if (late && down()) this.fail(new WovyrError(this.#about(`${stands()}.`), { code: "UNREACHABLE" }));
  }

  /** Whether time stands for a reason other than that everything has happened. */
  get #held(): boolean {
    const { attempts, stands } = this.#surroundings;
    return !this.#automatic || this.#steering > 0 || attempts() > 0 || stands() !== undefined;
  }

  /** Asks every condition; returns the answers that are on their way. */
  #ask(): Promise<void>[] {
    const asked: Promise<void>[] = [];
    this.#unasked = false;
    for (const condition of [...this.#conditions]) {
      try {
        const answer = condition.met();
        if (answer instanceof Promise)
          asked.push(answer.then((met) => this.#decide(condition, met)).catch((error) => this.#refuse(condition, error)));
        else this.#decide(condition, answer);
      } catch (error) {
        this.#refuse(condition, error);
      }
    }
    return asked;
  }

  /** Waits for answers; time moves on meanwhile where a condition waits for it. */
  async #answered(asked: readonly Promise<void>[]): Promise<void> {
    const already = new Set(this.#waiters);
    let over = false;
    const all = Promise.all(asked).then(() => {
      over = true;
      this.changes.tell();
    });
    while (!over && !this.#ended) {
      const changed = this.changes.next;
      await Promise.race([all, this.settle()]);
      const waits = [...this.#waiters].some((waiter) => !already.has(waiter));
      const next = over || !waits || this.#held ? undefined : await this.next();
      if (over) return;
      if (next === undefined || this.#surroundings.moving()) await Promise.race([all, changed]);
      else this.#surroundings.clock.advanceTo(next);
    }
  }

  #decide(condition: Condition, met: unknown): void {
    if (met !== true || !this.#conditions.delete(condition)) return;
    this.#waiters.delete(condition);
    this.#watchOver();
    condition.resolve();
  }

  #refuse(condition: Condition, error: unknown): void {
    if (!this.#conditions.delete(condition)) return;
    this.#waiters.delete(condition);
    this.#watchOver();
    condition.reject(error as Error);
  }

  /** When the next thing falls due; undefined when nothing ever will. */
  async next(): Promise<number | undefined> {
    const due = await this.#surroundings.due();
    let soonest = due ?? Number.POSITIVE_INFINITY;
    for (const { at } of this.#alarms) soonest = Math.min(soonest, at);
    return soonest === Number.POSITIVE_INFINITY ? undefined : soonest;
  }

  /** Nothing can happen any more: those who wait are told why, unless somebody has done something meanwhile. */
  async #giveUp(): Promise<void> {
    const changed = this.changes.next;
    let moved = false;
    void changed.then(() => {
      moved = true;
    });
    const all = [...this.#waiters];
    const reasons = await Promise.all(all.map((waiter) => waiter.explain().catch((error: Error) => error)));
    if (this.#surroundings.moving()) return;
    // A call whose answer is between the store and its caller is about to be answered.
    await this.settle();
    if (moved && all.some((waiter) => !this.#waiters.has(waiter))) return;
    for (const [index, waiter] of all.entries()) {
      if (!this.#waiters.delete(waiter)) continue;
      this.#conditions.delete(waiter as Condition);
      waiter.reject(this.#surroundings.claim(reasons[index] as Error));
    }
    this.#watchOver();
  }

  // ── patience ───────────────────────────────────────────────────────────────────────────────────────────

  /** Looks from time to time whether what is waited for hangs, as long as somebody waits. */
  #watchOver(): void {
    const waits = this.#waiters.size + this.#attendants.size > 0;
    if (waits === (this.#watch !== undefined)) return;
    speaks(this, waits);
    if (waits) {
      this.#waiting = realTime();
      this.#watch = setInterval(() => this.#look(), Math.max(5, Math.min(1_000, this.#patience / 10))).unref();
    } else {
      clearInterval(this.#watch);
      this.#watch = undefined;
    }
  }

  #look(): void {
    const moment = realTime() - this.#patience;
    if (this.#waiting > moment) return;
    const hanging = this.#surroundings.hanging(moment);
    const took = `for more than ${this.#patience} ms of real time (\`patience\`)`;
    const reason =
      hanging.length > 0
        ? `${hanging.join(", ")} ${hanging.length === 1 ? "has" : "have"} been under way ${took}. ${adviceOn(hanging)}`
        : this.#touched <= moment
          ? this.#idleReason(took)
          : undefined;
    if (reason !== undefined) this.fail(new WovyrError(this.#about(reason), { code: "TIMED_OUT" }));
  }

  #idleReason(took: string): string | undefined {
    const stands = this.#surroundings.stands();
    if (stands !== undefined) return `${stands}, ${took}.`;
    return this.#automatic || this.#steering > 0 ? undefined : `time is moved by hand here, and nobody has moved it on ${took}.`;
  }

  #about(reason: string): string {
    const all = [...this.#waiters, ...this.#attendants].map(({ what }) => what);
    const named = all.slice(0, 5).join(", ");
    return `The test waits for ${named || "nothing"}${all.length > 5 ? ` and ${all.length - 5} more` : ""}: ${reason}`;
  }

  /** Why it waits although nothing in the process can end it. */
  get lastWords(): string {
    const running = this.#surroundings.hanging(Number.POSITIVE_INFINITY);
    const one = running.length === 1;
    const reason =
      running.length > 0
        ? `${running.join(", ")} ${one ? "is" : "are"} running, and nothing in this process can end ${one ? "it" : "them"}. ${adviceOn(running)}`
        : `${this.#surroundings.stands() ?? "time is moved by hand here, and nobody moves it on"}.`;
    return this.#about(reason);
  }
}

const adviceOn = (hanging: readonly string[]): string =>
  hanging.some((what) => what.startsWith("activity "))
    ? 'A fake that is to take time awaits it (`await env.sleep("2h")`); one that really hangs is out of time only when the test moves it (`env.advance`).'
    : "What `plan.hold` stopped goes on after its `release()`.";

const realTime = performance.now.bind(performance);
const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve));
const pause = () => new Promise<void>((resolve) => void setTimeout(resolve, pollMilliseconds).unref());
