/** The rules of `all`, `settled`, `any`, `race`, `select` and `map` over a `Group`. */
import type { Settled } from "../effects/effect.ts";
import type { GroupPolicy } from "./group.ts";
import { fulfilled, type Outcome, rejected } from "./operation.ts";

/** The result in the shape in which the branches were given: an array, or a record with their keys. */
function shaped(values: unknown[], keys: readonly string[] | undefined): unknown {
  if (keys === undefined) return values;
  const record: Record<string, unknown> = {};
  keys.forEach((key, index) => {
    Object.defineProperty(record, key, {
      value: values[index],
      enumerable: true,
      configurable: true,
      writable: true,
    });
  });
  return record;
}

const settledEntry = (outcome: Outcome): Settled<unknown> =>
  outcome.ok ? { status: "fulfilled", value: outcome.value } : { status: "rejected", reason: outcome.error as Error };

const winner = (index: number, value: unknown, keys: readonly string[] | undefined) => ({
  winner: keys === undefined ? index : keys[index],
  value,
});

/** Every value, or the first failure. */
export function allPolicy(size: number, keys: readonly string[] | undefined): GroupPolicy {
  const values = new Array<unknown>(size).fill(undefined);
  return {
    settled(index, outcome) {
      if (!outcome.ok) return outcome;
      values[index] = outcome.value;
      return undefined;
    },
    complete: () => fulfilled(shaped(values, keys)),
  };
}

/** Every outcome. */
export function settledPolicy(size: number, keys: readonly string[] | undefined): GroupPolicy {
  const entries = new Array<unknown>(size).fill(undefined);
  return {
    settled(index, outcome) {
      entries[index] = settledEntry(outcome);
      return undefined;
    },
    complete: () => fulfilled(shaped(entries, keys)),
  };
}

/** The first success, or an AggregateError of every failure in the order of the branches. */
export function anyPolicy(size: number, keys: readonly string[] | undefined): GroupPolicy {
  const errors = new Array<unknown>(size).fill(undefined);
  return {
    settled(index, outcome) {
      if (outcome.ok) return fulfilled(winner(index, outcome.value, keys));
      errors[index] = outcome.error;
      return undefined;
    },
    complete: () => rejected(new AggregateError(errors, `all ${size} branches of any() failed`)),
  };
}

/** The first outcome, success or failure. */
export function racePolicy(keys: readonly string[] | undefined): GroupPolicy {
  return {
    settled: (index, outcome) => (outcome.ok ? fulfilled(winner(index, outcome.value, keys)) : outcome),
    complete: () => rejected(new Error("a race ended without a winner")),
  };
}

/** Every outcome, as long as no more than `failures` branches fail. */
export function tolerantPolicy(size: number, failures: number): GroupPolicy {
  const { settled, complete } = settledPolicy(size, undefined);
  let failed = 0;
  return {
    settled(index, outcome) {
      settled(index, outcome);
      if (!outcome.ok) failed += 1;
      return failed > failures ? outcome : undefined;
    },
    complete,
  };
}
