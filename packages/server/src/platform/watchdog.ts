/**
 * Ends a process whose turn never yields.
 *
 * 1. The thread that runs turns only writes into shared memory: when the present turn began, and whose it is.
 * 2. Another thread looks once in a while. A turn over its time is recorded as a strike against its run and place, in a way that does not need the blocked
 *    thread; then the process exits with code 70, so that its supervisor starts it again.
 * 3. Recovery parks a run with three strikes at one place.
 */
import type { StrikeSink } from "../engine/ports/store.ts";
import { startThread } from "./start-thread.ts";

export type TurnInProgress = {
  readonly tenant: string;
  readonly run: string;
  readonly tail: number;
  readonly workflow: string;
};

export type WatchdogData = {
  readonly shared: SharedArrayBuffer;
  readonly strikes: StrikeSink;
  readonly turnTimeout: number;
};

export interface Watchdog {
  began(turn: TurnInProgress | undefined): void;
  stop(): Promise<void>;
}

/** What both threads see: [0] number of the present turn, 0 when none; then the length and the UTF-8 bytes of its description. */
export const turnCell = 0;
export const lengthCell = 1;
export const headerBytes = 8;
const descriptionBytes = 2_048;

/** `turnTimeout` in milliseconds. */
export function startWatchdog(strikes: StrikeSink, turnTimeout: number): Watchdog {
  const shared = new SharedArrayBuffer(headerBytes + descriptionBytes);
  const cells = new Int32Array(shared, 0, 2);
  const text = new Uint8Array(shared, headerBytes);
  const encoder = new TextEncoder();
  const worker = startThread(import.meta.url, "./watchdog-thread", {
    shared,
    strikes,
    turnTimeout,
  } satisfies WatchdogData);
  worker.unref();
  let number = 0;
  return {
    began(turn) {
      if (turn === undefined) {
        Atomics.store(cells, turnCell, 0);
        return;
      }
      number = (number % 0x3fffffff) + 1;
      const { written } = encoder.encodeInto(`${turn.tail}\n${turn.tenant}\n${turn.run}\n${turn.workflow}`, text);
      Atomics.store(cells, lengthCell, written);
      Atomics.store(cells, turnCell, number);
    },
    async stop() {
      await worker.terminate();
    },
  };
}
