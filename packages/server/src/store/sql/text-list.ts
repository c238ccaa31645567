/**
 * Lists on their way to the database, each as one parameter.
 *
 * 1. In a list of texts U+001F ends each value; the database counts them, so a value that holds one is refused and never shifts the others.
 * 2. What the driver would change in encoding (half of a surrogate pair) is refused here.
 */
import { UnstorableTextError } from "../storable.ts";

export const separator = "\u001f";

/** A list of texts under construction. */
export class TextList {
  #joined = "";

  add(value: string): void {
    this.#joined += value + separator;
  }

  toParameter(): string {
    if (!this.#joined.isWellFormed()) throw new UnstorableTextError("a text");
    return this.#joined;
  }
}

export function textList(values: Iterable<string>): string {
  const list = new TextList();
  for (const value of values) list.add(value);
  return list.toParameter();
}

/** A Postgres array literal of numbers or booleans. */
export function arrayLiteral(values: readonly (number | boolean)[]): string {
  return `{${values.join(",")}}`;
}

/** The numbers of a Postgres array literal. */
export function parseNumbers(literal: string): number[] {
  return literal.length <= 2 ? [] : literal.slice(1, -1).split(",").map(Number);
}
