import type { Payload } from "../model/history.ts";
import { encodePayload } from "../model/payload.ts";
import { checkRun } from "../model/unrun-value.ts";

/** A mutable object of the workflow whose changes are persisted with the turn that made them. Costs nothing until it is touched. */
export class Tracked {
  readonly #value: object;
  readonly #what: string;
  readonly #rule: ((value: object) => void) | undefined;
  #touched = false;
  #text: Payload | undefined;
  #recorded: Payload | undefined;

  /** `rule` throws when the value, storable or not, is not one that may be kept. */
  constructor(value: object, what: string, rule?: (value: object) => void) {
    this.#value = value;
    this.#what = what;
    this.#rule = rule;
  }

  get value(): object {
    if (!this.#touched) {
      this.#touched = true;
      this.#recorded = encodePayload(this.#value, { what: this.#what });
    }
    return this.#value;
  }

  /** Encodes the present value; throws `PayloadError` when it cannot be stored. */
  check(limit: number): void {
    if (!this.#touched) return;
    if (this.#rule !== undefined) {
      checkRun(this.#value, this.#what);
      this.#rule(this.#value);
    }
    this.#text = encodePayload(this.#value, { limit, what: this.#what });
  }

  /** The encoded value at this moment; undefined when it cannot be stored. */
  textNow(): Payload | undefined {
    try {
      return encodePayload(this.#value, { what: this.#what });
    } catch {
      return undefined;
    }
  }

  /** The value when it differs from what history holds. */
  takeChange(): Payload | undefined {
    if (this.#text === undefined || this.#text === this.#recorded) return undefined;
    this.#recorded = this.#text;
    return this.#text;
  }
}
