/** Unpredictable bytes: identities and seeds come from here, and the jitter of retries. */
export interface Random {
  bytes(length: number): Uint8Array;
  /** A number in [0, 1). */
  fraction(): number;
}
