/** The event loop as the engine uses it: when to run the next batch, and when no microtask is left. */
export interface Loop {
  /** Calls `run` in a macrotask of its own, soon, after I/O that is waiting has been served. */
  immediate(run: () => void): void;
  /** Calls `run` when the microtask queue has drained. */
  drained(run: () => void): void;
  /** Milliseconds of a monotonic clock; only differences mean anything. */
  elapsed(): number;
}
