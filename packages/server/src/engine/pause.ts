/** Waiting by the engine's clock. */
import type { Clock } from "./ports/clock.ts";

/** Resolves after so many milliseconds, or when the signal is aborted. */
export function pause(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.wakeAt(clock.now() + milliseconds, end);
    signal?.addEventListener("abort", end, { once: true });
  });
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
