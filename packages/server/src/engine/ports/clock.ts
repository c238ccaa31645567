/** Time as the engine knows it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `wake` once, at or after `at` (milliseconds since the epoch; any distance). Returns a function that calls it off. */
  wakeAt(at: number, wake: () => void): () => void;
}
