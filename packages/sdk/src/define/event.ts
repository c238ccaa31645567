import { checkName } from "../model/name.ts";
import { checkSchema, type InputOf, type OutputOf, type Schema } from "./schema.ts";

declare const received: unique symbol;
declare const sent: unique symbol;

/** An event that workflows await: `T` is the payload that they see, `P` what a sender passes. */
export interface EventDef<out T, in P = T> {
  readonly name: string;
  readonly schema?: Schema;
  readonly [received]: T;
  readonly [sent]: (payload: P) => void;
}

/** Defines an event; one without a schema carries nothing. */
export function event(name: string): EventDef<void, void>;
export function event<S extends Schema>(name: string, schema: S): EventDef<OutputOf<S>, InputOf<S>>;
export function event(name: string, schema?: Schema): EventDef<unknown, never> {
  checkName(name, "the name of an event");
  checkSchema(schema, `the schema of event ${name}`);
  return Object.freeze(schema === undefined ? { name } : { name, schema }) as EventDef<unknown, never>;
}
