/**
 * Who is next of the attempts that wait: a strategy decides.
 *
 * 1. Pure: it reads no clock and draws no chance, it is told the time. The same calls lead to the same order.
 * 2. Its memory is bounded by what waits in it.
 * 3. Nobody waits for ever: whatever else comes, each is taken at last. A strategy that cannot say so says what it needs for it (ageing, an allowance).
 *
 * Whoever writes one runs `schedulingContract` against it (`@wovyr/server/scheduling-contract`).
 */
import { type Priority, WovyrError } from "@wovyr/sdk";

/** An attempt that waits, as a strategy sees it. */
export type WaitingAttempt = {
  readonly tenant: string;
  readonly workflow: string;
  readonly instanceId: string;
  readonly activity: string;
  readonly priority: Priority;
  /** Since when it is due, as recorded; milliseconds since the epoch. */
  readonly since: number;
  /** When its time, or that of its run, is over: whichever ends first; milliseconds since the epoch. */
  readonly deadline: number | undefined;
};

export interface SchedulingQueue {
  /** Those that were added and not taken. */
  readonly size: number;
  add(waiting: WaitingAttempt, now: number): void;
  /** The next one: exactly what was added, each once; undefined when nobody waits. */
  take(now: number): WaitingAttempt | undefined;
}

export interface SchedulingStrategy {
  readonly name: string;
  /** An empty queue. There are several at a time: for places, and for each limit that attempts wait for. */
  createQueue(): SchedulingQueue;
}

/** Throws INVALID_OPTION for what is no strategy. */
export function checkStrategy(strategy: SchedulingStrategy): SchedulingStrategy {
  const { name, createQueue } = strategy ?? {};
  if (typeof name === "string" && typeof createQueue === "function") return strategy;
  throw new WovyrError(
    "scheduling must be a strategy: fifo(), priority(), deadlineFirst(), fair() or an object with a name and a function createQueue",
    { code: "INVALID_OPTION" },
  );
}
