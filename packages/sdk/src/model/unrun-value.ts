/**
 * Effects and generators within a value: a `yield*` was forgotten, whatever else is wrong with the value.
 *
 * 1. It is looked for before a schema judges the value, so that the mistake is told and not what the schema makes of it.
 * 2. It never throws for anything else: what cannot be read is told by whoever reads it next.
 * 3. It is bounded: `maxValues` are looked at, `maxDepth` deep.
 */
import { type ErrorCode, PayloadError } from "./errors.ts";
import { type Described, describedEffect } from "./unrun-effect.ts";
import { kindOf, tagOf } from "./value-kind.ts";
import { pathText, type Step, stepOfKey } from "./value-path.ts";

const maxValues = 100_000;
const maxDepth = 1_000;

export type Unrun = { readonly why: string; readonly advice: string; readonly code: ErrorCode };

/** What is wrong with an object that would have to run first; undefined for any other. */
export function unrun(value: object): Unrun | undefined {
  const tag = tagOf(value);
  if (tag === "[object AsyncGenerator]" || tag === "[object Generator]")
    return { why: "is a generator", advice: "forgot `yield*`?", code: "PAYLOAD_UNSERIALIZABLE" };
  const effect = describedEffect(value);
  return effect && unrunEffect(effect);
}

function unrunEffect({ what, at, write }: Described): Unrun {
  return {
    why: `is an effect that was not run: ${what}${at === undefined ? "" : `, made at ${at}`}`,
    advice: `write \`${write}\` and pass its result`,
    code: "EFFECT_NOT_YIELDED",
  };
}

/** Throws `PayloadError` when there is one in the value. `what` is how messages call the whole. */
export function checkRun(value: unknown, what: string): void {
  if (typeof value !== "object" || value === null) return;
  const search = new Search();
  let found: Unrun | undefined;
  try {
    found = search.find(value);
  } catch {
    return; // a getter or a proxy threw
  }
  if (found === undefined) return;
  const path = pathText(search.path);
  throw new PayloadError(`${what} cannot be stored: ${path} ${found.why}; ${found.advice}`, { code: found.code, path });
}

class Search {
  /** Where the search is; where it ended, when something was found. */
  readonly path: Step[] = [];
  readonly #seen = new Set<object>();
  #left = maxValues;

  find(value: unknown): Unrun | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    if (--this.#left < 0 || this.path.length >= maxDepth || this.#seen.has(value)) return undefined;
    this.#seen.add(value);
    switch (kindOf(value)) {
      case "object":
        return this.#inFields(value as Readonly<Record<string, unknown>>);
      case "array":
        return this.#inItems(value as readonly unknown[]);
      case "Map":
        return this.#inMap(value as ReadonlyMap<unknown, unknown>);
      case "Set":
        return this.#inSet(value as ReadonlySet<unknown>);
      case "other":
        return unrun(value);
      default:
        return undefined;
    }
  }

  #inFields(value: Readonly<Record<string, unknown>>): Unrun | undefined {
    for (const key of Object.keys(value)) {
      const found = this.#at(key, value[key]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #inItems(value: readonly unknown[]): Unrun | undefined {
    for (let index = 0; index < value.length && this.#left > 0; index++) {
      const found = this.#at(index, value[index]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #inMap(value: ReadonlyMap<unknown, unknown>): Unrun | undefined {
    let index = 0;
    for (const [key, item] of Map.prototype.entries.call(value)) {
      const found = this.#at({ place: `key ${index}` }, key) ?? this.#at(stepOfKey(key, index), item);
      if (found !== undefined) return found;
      index++;
    }
    return undefined;
  }

  #inSet(value: ReadonlySet<unknown>): Unrun | undefined {
    let index = 0;
    for (const item of Set.prototype.values.call(value)) {
      const found = this.#at({ place: `item ${index++}` }, item);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #at(step: Step, value: unknown): Unrun | undefined {
    if (typeof value !== "object" || value === null) {
      this.#left -= 1;
      return undefined;
    }
    this.path.push(step);
    const found = this.find(value);
    if (found === undefined) this.path.pop();
    return found;
  }
}
