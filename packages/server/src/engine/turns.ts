/**
 * Runs turns and replays, one after another.
 *
 * 1. One job at a time, in a batch of its own: between its first and its last step no other code runs, but for microtasks that the workflows made.
 * 2. A job that has not ended when the microtasks have drained is stuck in a foreign await: it is told so, and the batch goes on with the next.
 * 3. A batch ends after `sliceMilliseconds`, so that I/O and HTTP are served in between.
 */
import type { Loop } from "./ports/loop.ts";

export interface Job {
  /** Works until it is done (true) or has to wait for microtasks (false; it calls `Turns.done` itself later). */
  run(): boolean;
  /** The microtasks have drained, and the job is still waiting. It must be done when this returns. */
  stuck(): void;
}

const sliceMilliseconds = 5;

export class Turns {
  readonly #loop: Loop;
  readonly #began: (job: Job | undefined) => void;
  #ready: Job[] = [];
  #head = 0;
  #current: Job | undefined;
  #scheduled = false;
  #sliceStart = 0;
  #jobsInSlice = 0;
  #stopped = false;

  /** `began` hears which job is being run, and undefined when none is (for the watchdog). */
  constructor(loop: Loop, began: (job: Job | undefined) => void) {
    this.#loop = loop;
    this.#began = began;
  }

  get idle(): boolean {
    return this.#current === undefined && this.#head >= this.#ready.length;
  }

  add(job: Job): void {
    if (this.#stopped) return;
    this.#ready.push(job);
    this.#schedule();
  }

  /** No further job begins; those that wait are forgotten. */
  stop(): void {
    this.#stopped = true;
    this.#ready = [];
    this.#head = 0;
  }

  /** The current job, which had to wait, has finished. */
  done(job: Job): void {
    if (this.#current !== job) return;
    this.#current = undefined;
    this.#next();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#loop.immediate(() => this.#batch());
  }

  #batch(): void {
    this.#sliceStart = this.#loop.elapsed();
    this.#jobsInSlice = 0;
    this.#watch();
    this.#next();
  }

  /** One check covers any number of jobs: it comes only when no microtask is left. */
  #watch(): void {
    this.#loop.drained(() => {
      const job = this.#current;
      if (job === undefined) return;
      this.#current = undefined;
      job.stuck();
      this.#watch();
      this.#next();
    });
  }

  #next(): void {
    for (;;) {
      const job = this.#ready[this.#head];
      if (job === undefined) {
        this.#ready = [];
        this.#head = 0;
        this.#scheduled = false;
        this.#began(undefined);
        return;
      }
      if (this.#sliceIsOver()) {
        this.#began(undefined);
        this.#loop.immediate(() => this.#batch());
        return;
      }
      this.#head += 1;
      this.#current = job;
      this.#began(job);
      if (!job.run()) return;
      this.#current = undefined;
    }
  }

  #sliceIsOver(): boolean {
    this.#jobsInSlice += 1;
    if (this.#jobsInSlice % 8 !== 0) return false;
    return this.#loop.elapsed() - this.#sliceStart > sliceMilliseconds;
  }
}
