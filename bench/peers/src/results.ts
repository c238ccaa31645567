/** All values of all rounds, and what became of those that are missing. */
import { median } from "../../src/measure.ts";
import type { Failure, Value } from "./measure-engine.ts";
import type { Measure, MeasureName } from "./measures.ts";
import type { Peer } from "./peers.ts";

export class Results {
  readonly #values = new Map<string, number[]>();
  readonly #failures = new Map<string, string>();

  add(peer: Peer, results: readonly (Value | Failure)[]): void {
    for (const result of results) {
      const key = keyOf(peer, result.measure);
      if ("failure" in result) this.#failures.set(key, result.failure);
      else this.#values.set(key, [...(this.#values.get(key) ?? []), result.value]);
    }
  }

  valuesOf(peer: Peer, measure: MeasureName): readonly number[] {
    return this.#values.get(keyOf(peer, measure)) ?? [];
  }

  medianOf(peer: Peer, measure: MeasureName): number | undefined {
    const values = this.valuesOf(peer, measure);
    return values.length === 0 ? undefined : median(values);
  }

  failureOf(peer: Peer, measure: MeasureName): string | undefined {
    return this.#failures.get(keyOf(peer, measure));
  }

  /** How many times as good the first is as the second. */
  timesAsGood(one: Peer, other: Peer, { name, better }: Measure): number | undefined {
    const [first, second] = [this.medianOf(one, name), this.medianOf(other, name)];
    if (first === undefined || second === undefined) return undefined;
    return better === "more" ? first / second : second / first;
  }
}

const keyOf = (peer: Peer, measure: MeasureName) => `${peer.name} ${measure}`;
