import type { TurnWrite } from "../../engine/ports/store.ts";
import { lastPerEffect } from "../last-per-effect.ts";
import type { SqlValue } from "./driver.ts";
import { arrayLiteral, TextList } from "./text-list.ts";
import { topicOf } from "./topic.ts";

/** Of a wait without a key, which does not look back. */
const keyless = -1;

/** `waits` … `wait_afters`. */
export class WaitColumns {
  readonly #turns: number[] = [];
  readonly #effects = new TextList();
  readonly #names = new TextList();
  readonly #keys = new TextList();
  readonly #topics = new TextList();
  readonly #afters: number[] = [];

  add({ waits }: TurnWrite, place: number): void {
    if (waits.length === 0) return;
    for (const { effect, name, key, after } of lastPerEffect(waits)) {
      this.#turns.push(place);
      this.#effects.add(effect);
      this.#names.add(name);
      this.#keys.add(key ?? "");
      this.#topics.add(topicOf(name, key));
      this.#afters.push(key === undefined ? keyless : Math.max(0, after));
    }
  }

  values(): SqlValue[] {
    if (this.#turns.length === 0) return [0, null, null, null, null, null, null];
    return [
      this.#turns.length,
      arrayLiteral(this.#turns),
      this.#effects.toParameter(),
      this.#names.toParameter(),
      this.#keys.toParameter(),
      this.#topics.toParameter(),
      arrayLiteral(this.#afters),
    ];
  }
}
