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
  /** Whether it has not answered in time what it was asked last by a beat. */
  silent = false;
  #store: (Store & { readonly part: StorePart }) | undefined;
  /** What the last answer was, when it was none. */
  #failure: StoreUnavailableError | undefined;
  readonly #back: (database: Database) => void;

  /** `back` hears when it answers after it did not. */
  constructor(place: number, label: string, back: (database: Database) => void) {
    this.place = place;
    this.label = label;
    this.#back = back;
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
    if (this.#store === undefined) return this.unavailable("it could not be reached yet");
    return this.silent ? this.unavailable("it does not answer") : this.#failure;
  }

  opened(store: Store & { readonly part: StorePart }): void {
    this.#store = store;
  }

  async ask<T>(call: (store: Store & { readonly part: StorePart }) => Promise<T>): Promise<T> {
    if (this.silent) throw this.unavailable("it does not answer");
    return this.askAnyway(call);
  }

  /** Also when it was silent. */
  async askAnyway<T>(call: (store: Store & { readonly part: StorePart }) => Promise<T>): Promise<T> {
    if (this.#store === undefined) throw this.unavailable("it could not be reached yet");
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
