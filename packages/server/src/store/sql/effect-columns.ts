import type { SqlValue } from "./driver.ts";
import { arrayLiteral, TextList } from "./text-list.ts";

/** Effects of turns whose rows go: how many, their turns and their names. */
export class EffectColumns {
  readonly #turns: number[] = [];
  readonly #effects = new TextList();

  add(effects: readonly string[], place: number): void {
    for (const effect of effects) {
      this.#turns.push(place);
      this.#effects.add(effect);
    }
  }

  values(): SqlValue[] {
    if (this.#turns.length === 0) return [0, null, null];
    return [this.#turns.length, arrayLiteral(this.#turns), this.#effects.toParameter()];
  }
}
