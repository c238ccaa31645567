/**
 * Ends a process whose turn never yields.
 *
 * 1. The thread that runs turns only writes into shared memory: when the present turn began, and whose it is.
 * 2. Another thread looks once in a while. A turn over its time is recorded as a strike against its run and place, in a way that does not need the blocked
 *    thread; then the process is ended (SIGABRT, exit code 134), so that its supervisor starts it again.
 * 3. Recovery parks a run with three strikes; one that comes further clears them.
 */
import type { StrikeSink } from "../engine/ports/store.ts";
import { startThread } from "./start-thread.ts";

export type RunIdentity = { readonly tenant: string; readonly run: string; readonly workflow: string };

export type WatchdogData = {
  readonly shared: SharedArrayBuffer;
  readonly strikes: StrikeSink;
  readonly turnTimeout: number;
};

export interface Watchdog {
  /** A turn of the run begins at `tail`, or (undefined) none is under way. */
  began(run: RunIdentity | undefined, tail: number): void;
  stop(): Promise<void>;
}

/** What both threads see: the number of the present turn (0 when none), its tail, then its run, tenant and workflow, each as a length and UTF-8 bytes. */
export const turnCell = 0;
export const tailCell = 1;
export const headerBytes = 8;
/** 1 byte of length and up to 255 bytes of name, three times. */
export const nameBytes = 256;

/** `turnTimeout` in milliseconds. */
export function startWatchdog(strikes: StrikeSink, turnTimeout: number): Watchdog {
  const shared = new SharedArrayBuffer(headerBytes + 3 * nameBytes);
  const cells = new Int32Array(shared, 0, 2);
  const names = [0, 1, 2].map((place) => new Uint8Array(shared, headerBytes + place * nameBytes, nameBytes));
  const written = ["", "", ""];
  const worker = startThread(import.meta.url, "./watchdog-thread", { shared, strikes, turnTimeout } satisfies WatchdogData);
  worker.unref();
  let number = 0;
  // Names have up to 255 ASCII characters (model/name.ts); tenant and workflow rarely change from turn to turn.
  const write = (place: number, name: string) => {
    if (written[place] === name) return;
    written[place] = name;
    const bytes = names[place] as Uint8Array;
    bytes[0] = name.length;
    for (let i = 0; i < name.length; i++) bytes[i + 1] = name.charCodeAt(i);
  };
  return {
    began(run, tail) {
      if (run === undefined) {
        Atomics.store(cells, turnCell, 0);
        return;
      }
      number = (number % 0x3fffffff) + 1;
      write(0, run.run);
      write(1, run.tenant);
      write(2, run.workflow);
      cells[tailCell] = tail;
      Atomics.store(cells, turnCell, number);
    },
    async stop() {
      await worker.terminate();
    },
  };
}
