import type { TurnWrite } from "../../engine/ports/store.ts";
import { lastPerEffect } from "../last-per-effect.ts";
import type { SqlValue } from "./driver.ts";
import { arrayLiteral, TextList } from "./text-list.ts";

/** `letters` … `letter_failures`. */
export class DeadLetterColumns {
  readonly #turns: number[] = [];
  readonly #effects = new TextList();
  readonly #kinds = new TextList();
  readonly #names = new TextList();
  readonly #attempts: number[] = [];
  readonly #failures = new TextList();

  add({ deadLetters }: TurnWrite, place: number): void {
    if (deadLetters.length === 0) return;
    for (const { effect, kind, name, attempts, failure } of lastPerEffect(deadLetters)) {
      this.#turns.push(place);
      this.#effects.add(effect);
      this.#kinds.add(kind);
      this.#names.add(name);
      this.#attempts.push(attempts);
      this.#failures.add(failure);
    }
  }

  values(): SqlValue[] {
    if (this.#turns.length === 0) return [0, null, null, null, null, null, null];
    return [
      this.#turns.length,
      arrayLiteral(this.#turns),
      this.#effects.toParameter(),
      this.#kinds.toParameter(),
      this.#names.toParameter(),
      arrayLiteral(this.#attempts),
      this.#failures.toParameter(),
    ];
  }
}
