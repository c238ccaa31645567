/** Waiting by the engine's clock. */
import type { Clock } from "./ports/clock.ts";

/** Resolves after so many milliseconds. */
export function pause(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.wakeAt(clock.now() + milliseconds, resolve));
}

/** True when the promise was kept within so many milliseconds; rejects when it was broken by then. */
export async function atMost(clock: Clock, milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  let cancel = () => {};
  const late = new Promise<false>((resolve) => {
    cancel = clock.wakeAt(clock.now() + milliseconds, () => resolve(false));
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    cancel();
  }
}
