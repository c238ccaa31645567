/** Who decides when what has happened outside reaches the engine: the order in which attempts end and faked events arrive. */
export type ConductedAttempt = {
  readonly name: string;
  readonly key: string;
  readonly attempt: number;
  /** Whether the engine does it itself: its body waits for nothing but the engine. */
  readonly own: boolean;
  readonly input: unknown;
};

export interface Conductor {
  /** Runs an attempt's body and gives its outcome when the order wants it. */
  attempt(attempt: ConductedAttempt, run: () => Promise<unknown>): Promise<unknown>;
  /** Sends a faked event when the order wants it. */
  event(name: string, send: () => Promise<void>): Promise<void>;
}
