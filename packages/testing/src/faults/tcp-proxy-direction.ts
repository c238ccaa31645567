/**
 * One direction of a proxied connection: what comes from one socket goes to the other, as late, as slowly or not at all as the conditions say.
 *
 * 1. Bytes leave in the order in which they came, none twice; the end of the source is passed on after them.
 * 2. At most `bound` bytes and one chunk wait here; from there on the source is paused, and so is whoever writes to it.
 * 3. After `stop` nothing leaves any more, and no timer is left.
 */
import type { Socket } from "node:net";

/** What a network does to everything that passes; shared by all directions of a proxy. */
export type Conditions = {
  held: boolean;
  /** For each direction of each connection; Infinity: no limit. */
  bytesPerSecond: number;
  /** Milliseconds, each way. */
  delay: number;
};

/** Bytes. */
const bound = 256 * 1_024;
/** Milliseconds' worth of bytes that a throttled direction lets pass at once. */
const burst = 50;

type Waiting = { readonly bytes: Buffer; readonly due: number };

export class Direction {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #conditions: Conditions;
  readonly #queue: Waiting[] = [];
  #queued = 0;
  #sourceEnded = false;
  #sinkFull = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  /** Bytes that may leave now, as of `#countedAt`. */
  #allowance = 0;
  #countedAt = performance.now();

  /** `arrived` sees each chunk first, and returns what of it is to pass. */
  constructor(source: Socket, sink: Socket, conditions: Conditions, arrived: (chunk: Buffer) => Buffer | undefined) {
    this.#source = source;
    this.#sink = sink;
    this.#conditions = conditions;
    source.on("data", (chunk: Buffer) => {
      const passing = arrived(chunk);
      if (passing !== undefined) this.#take(passing);
    });
    source.on("end", () => this.finish());
    sink.on("drain", () => {
      this.#sinkFull = false;
      this.pump();
    });
    this.pump();
  }

  /** Bytes that wait here. */
  get queued(): number {
    return this.#queued;
  }

  /** Ends the sink when everything that waits has left. */
  finish(): void {
    this.#sourceEnded = true;
    this.pump();
  }

  stop(): void {
    this.#stopped = true;
    this.#queue.length = 0;
    this.#queued = 0;
    clearTimeout(this.#timer);
  }

  /** Lets leave what may leave now; called again whenever the conditions change. */
  pump(): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    const { held } = this.#conditions;
    if (!held) this.#release();
    if (this.#sourceEnded) return;
    if (held || this.#queued >= bound) this.#source.pause();
    else this.#source.resume();
  }

  #take(bytes: Buffer): void {
    if (this.#stopped) return;
    this.#queue.push({ bytes, due: performance.now() + this.#conditions.delay });
    this.#queued += bytes.length;
    this.pump();
  }

  #release(): void {
    while (!this.#sinkFull) {
      const next = this.#queue[0];
      if (next === undefined) {
        if (this.#sourceEnded && !this.#sink.writableEnded) this.#sink.end();
        return;
      }
      const now = performance.now();
      const early = this.#conditions.delay > 0 ? next.due - now : 0;
      const allowed = early > 0 ? 0 : this.#allowed(now, next.bytes.length);
      if (allowed === 0) {
        this.#pumpIn(early > 0 ? early : burst / 2);
        return;
      }
      this.#queue.shift();
      if (allowed < next.bytes.length) this.#queue.unshift({ bytes: next.bytes.subarray(allowed), due: 0 });
      this.#queued -= allowed;
      this.#sinkFull = !this.#sink.write(next.bytes.subarray(0, allowed));
    }
  }

  /** How many of so many bytes may leave; they are counted. */
  #allowed(now: number, wanted: number): number {
    const { bytesPerSecond } = this.#conditions;
    const earned = ((now - this.#countedAt) * bytesPerSecond) / 1_000;
    this.#countedAt = now;
    if (bytesPerSecond === Number.POSITIVE_INFINITY) {
      this.#allowance = 0;
      return wanted;
    }
    this.#allowance = Math.min(this.#allowance + earned, Math.max(1, (bytesPerSecond * burst) / 1_000));
    const allowed = Math.min(wanted, Math.floor(this.#allowance));
    this.#allowance -= allowed;
    return allowed;
  }

  #pumpIn(milliseconds: number): void {
    this.#timer = setTimeout(() => this.pump(), Math.max(1, milliseconds));
  }
}
