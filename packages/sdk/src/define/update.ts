import { messageDefinition } from "./query.ts";
import type { MaybeSchema, Schema } from "./schema.ts";
import type { InOr, OutOr, Schemas } from "./signature.ts";

declare const does: unique symbol;

/** A change of a run that its caller waits for: validated, recorded, then handled. */
export interface Update<in I, out O> {
  readonly name: string;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly [does]: (input: I) => O;
}

/** Defines an update; the workflow handles it with `ctx.onUpdate`. */
export function update<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
  name: string,
  io: Schemas<I, O> = {},
): Update<InOr<I, void>, OutOr<O, void>> {
  return messageDefinition("update", name, io) as Update<InOr<I, void>, OutOr<O, void>>;
}
