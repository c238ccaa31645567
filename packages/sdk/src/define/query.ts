import { checkName } from "../model/name.ts";
import { checkOptions } from "../model/option.ts";
import { checkSchema, type MaybeSchema, type Schema } from "./schema.ts";
import type { InOr, OutOr, Schemas } from "./signature.ts";

declare const asks: unique symbol;

/** A question to a run, answered from its live state. */
export interface Query<in I, out O> {
  readonly name: string;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly [asks]: (input: I) => O;
}

/** Defines a query; the workflow answers it with `ctx.onQuery`. */
export function query<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
  name: string,
  io: Schemas<I, O> = {},
): Query<InOr<I, void>, OutOr<O, unknown>> {
  return messageDefinition("query", name, io) as Query<InOr<I, void>, OutOr<O, unknown>>;
}

export function messageDefinition(kind: "query" | "update", name: string, io: Schemas<MaybeSchema, MaybeSchema>): object {
  checkName(name, `the name of ${kind === "query" ? "a query" : "an update"}`);
  checkOptions(io, ["input", "output"], `${kind} ${name}`);
  checkSchema(io.input, `the input of ${kind} ${name}`);
  checkSchema(io.output, `the output of ${kind} ${name}`);
  return Object.freeze({ name, ...(io.input !== undefined && { input: io.input }), ...(io.output !== undefined && { output: io.output }) });
}
