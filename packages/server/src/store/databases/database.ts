/**
 * One of several databases, which may be away.
 *
 * 1. One that is not open yet, or has not answered its last beat in time, is not asked anything else: whoever needs it hears so at once.
 * 2. Errors tell which database they are of.
 */
import type { StorePart } from "../../engine/ports/databases.ts";
import { type Store, StoreUnavailableError } from "../../engine/ports/store.ts";

export class Database {
  readonly place: number;
  /** Where it is, for messages. */
  readonly label: string;
  #store: (Store & { readonly part: StorePart }) | undefined;
  /** What the last answer was, when it was none. It is asked for often, and made once. */
  #failure: StoreUnavailableError | undefined;
  #silence: StoreUnavailableError | undefined;
  readonly #closed: StoreUnavailableError;
  readonly #back: (database: Database) => void;

  /** `back` hears when it answers after it did not. */
  constructor(place: number, label: string, back: (database: Database) => void) {
    this.place = place;
    this.label = label;
    this.#back = back;
    this.#closed = this.unavailable("it could not be reached yet");
  }

  get store(): (Store & { readonly part: StorePart }) | undefined {
    return this.#store;
  }

  /** Whether it answered when it was asked last. */
  get answers(): boolean {
    return this.failure === undefined;
  }

  /** Why it does not. */
  get failure(): StoreUnavailableError | undefined {
    return this.#store === undefined ? this.#closed : (this.#silence ?? this.#failure);
  }

  /** Whether it has not answered in time what it was asked last by a beat. */
  set silent(silent: boolean) {
    if (!silent) this.#silence = undefined;
    else this.#silence ??= this.unavailable("it does not answer");
  }

  opened(store: Store & { readonly part: StorePart }): void {
    this.#store = store;
  }

  async ask<T>(call: (store: Store & { readonly part: StorePart }) => Promise<T>): Promise<T> {
    if (this.#silence !== undefined) throw this.#silence;
    return this.askAnyway(call);
  }

  /** Also when it was silent. */
  async askAnyway<T>(call: (store: Store & { readonly part: StorePart }) => Promise<T>): Promise<T> {
    if (this.#store === undefined) throw this.#closed;
    try {
      const answer = await call(this.#store);
      if (this.#failure !== undefined) {
        this.#failure = undefined;
        this.#back(this);
      }
      return answer;
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      this.#failure = this.unavailable(error.message, error);
      throw this.#failure;
    }
  }

  unavailable(reason: string, cause?: Error): StoreUnavailableError {
    const message = reason.includes(this.label) ? reason : `database ${this.label}: ${reason}`;
    return new StoreUnavailableError(message, cause === undefined ? {} : { cause });
  }
}
