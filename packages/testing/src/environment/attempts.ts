/**
 * The bodies of activities that are being run, each in an asynchronous context of its own.
 *
 * 1. Code that an activity calls can be told from the test's own: by it a sleep in virtual time and a rejection that nobody handles find their attempt.
 * 2. An attempt counts as long as the engine waits for it; what its body does after a timeout or a cancellation counts no more.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export type RunningAttempt = {
  readonly activity: string;
  readonly key: string;
  readonly attempt: number;
  readonly instanceId: string;
  readonly owner: Attempts;
  /** Sleeps in virtual time that its body is in. */
  sleeping: number;
  /** When it began, by the clock of the machine, in milliseconds. */
  readonly since: number;
};

/** Before a guard takes its place. */
const realTime = performance.now.bind(performance);

const current = new AsyncLocalStorage<RunningAttempt>();

/** The attempt whose body called, directly or through what it awaits. */
export const callingAttempt = (): RunningAttempt | undefined => current.getStore();

export class Attempts {
  /** The newest attempt of each effect. */
  readonly #running = new Map<string, RunningAttempt>();

  /** Runs a body as an attempt. */
  async run(about: Omit<RunningAttempt, "owner" | "since">, body: () => unknown): Promise<unknown> {
    const attempt: RunningAttempt = { ...about, owner: this, since: realTime() };
    this.#running.set(attempt.key, attempt);
    try {
      return await current.run(attempt, body);
    } finally {
      if (this.#running.get(attempt.key) === attempt) this.#running.delete(attempt.key);
    }
  }

  /** Attempts among them that sleep in virtual time. */
  sleeping(awaited: (key: string) => boolean): number {
    let count = 0;
    for (const attempt of this.#running.values()) if (attempt.sleeping > 0 && awaited(attempt.key)) count += 1;
    return count;
  }

  /** What runs, for people. */
  describe(): string[] {
    return [...this.#running.values()].map(described);
  }

  /** Those that have run since before a moment of real time, and do not sleep in virtual time. */
  since(moment: number): string[] {
    return [...this.#running.values()].filter(({ since, sleeping }) => since <= moment && sleeping === 0).map(described);
  }

  forget(): void {
    this.#running.clear();
  }
}

const described = ({ activity, attempt, instanceId }: RunningAttempt) =>
  `activity "${activity}" (attempt ${attempt}, instance ${instanceId})`;
