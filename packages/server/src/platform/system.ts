/** The engine's ports on a real machine: its clock, its randomness, its event loop, its memory. */
import { randomFillSync } from "node:crypto";
import { getHeapStatistics } from "node:v8";
import type { Clock } from "../engine/ports/clock.ts";
import type { Loop } from "../engine/ports/loop.ts";
import type { Random } from "../engine/ports/random.ts";

/** Host timers overflow beyond 2^31 - 1 ms; longer ones are slept in parts. */
const longestTimer = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  wakeAt(at, wake) {
    let handle: NodeJS.Timeout;
    const arm = () => {
      const left = at - Date.now();
      // A host timer may fire a little early by the wall clock.
      handle = left > 0 ? setTimeout(arm, Math.min(left, longestTimer)) : setTimeout(wake, 0);
    };
    arm();
    return () => clearTimeout(handle);
  },
};

const pool = new Uint8Array(4_096);
let poolUsed = pool.length;

export const systemRandom: Random = {
  bytes(length) {
    if (length > pool.length) return randomFillSync(new Uint8Array(length));
    if (poolUsed + length > pool.length) {
      randomFillSync(pool);
      poolUsed = 0;
    }
    poolUsed += length;
    return pool.slice(poolUsed - length, poolUsed);
  },
  fraction: () => Math.random(),
};

export const systemLoop: Loop = {
  immediate: (run) => {
    setImmediate(run);
  },
  // A tick that is queued from a microtask runs when no microtask is left.
  drained: (run) => queueMicrotask(() => process.nextTick(run)),
  elapsed: () => performance.now(),
};

/** Above it, a collection may come too late for pages that are half empty: measured, V8 gave up at two thirds of the limit. */
const fullHeap = 0.55;

export function heapIsShort(): boolean {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  return used_heap_size > fullHeap * heap_size_limit;
}
