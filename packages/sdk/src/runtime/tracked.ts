import type { Payload } from "../model/history.ts";
import { encodePayload } from "../model/payload.ts";
import { checkRun } from "../model/unrun-value.ts";

/** A mutable object of the workflow whose changes are persisted with the turn that made them. Costs nothing until it is touched. */
export class Tracked {
  readonly #value: object;
  readonly #what: string;
  readonly #limit: number;
  readonly #rule: ((value: object) => void) | undefined;
  #touched = false;
  #text: Payload | undefined;
  #recorded: Payload | undefined;

  /** `limit`: bytes of the stored text. `rule` throws when the value, storable or not, is not one that may be kept. */
  constructor(value: object, what: string, limit: number, rule?: (value: object) => void) {
    this.#value = value;
    this.#what = what;
    this.#limit = limit;
    this.#rule = rule;
  }

  get value(): object {
    if (!this.#touched) {
      this.#touched = true;
      this.#recorded = this.#encoded();
    }
    return this.#value;
  }

  /** Encodes the present value; throws `PayloadError` when it cannot be stored. */
  check(): void {
    if (!this.#touched) return;
    if (this.#rule !== undefined) {
      checkRun(this.#value, this.#what);
      this.#rule(this.#value);
    }
    this.#text = this.#encoded();
  }

  /** The encoded value at this moment; undefined when it cannot be stored. */
  textNow(): Payload | undefined {
    try {
      return this.#encoded();
    } catch {
      return undefined;
    }
  }

  #encoded(): Payload {
    return encodePayload(this.#value, { limit: this.#limit, what: this.#what });
  }

  /** The value when it differs from what history holds. */
  takeChange(): Payload | undefined {
    if (this.#text === undefined || this.#text === this.#recorded) return undefined;
    this.#recorded = this.#text;
    return this.#text;
  }
}
