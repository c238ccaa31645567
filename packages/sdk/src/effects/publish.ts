import type { EventDef } from "../define/event.ts";
import { parse } from "../define/schema.ts";
import type { Args } from "../define/signature.ts";
import { WovyrError } from "../model/errors.ts";
import { checkEventKey } from "../model/event-key.ts";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkOptions } from "../model/option.ts";
import { ActivityEffect } from "./activity.ts";
import { type CallOptions, callOptionNames, checkCallOptions, noOptions } from "./call-options.ts";
import { captureSite } from "./effect.ts";

export type PublishOptions = {
  /** Whoever waits for the event with this key gets it; it is kept, so that a wait that is opened later finds it. Default: whoever waits for it without a key now. */
  readonly key?: string | undefined;
  /** The same publication with the same key is done once. */
  readonly idempotencyKey?: string | undefined;
};

/** What the engine is asked to publish. */
export type PublishInput = { readonly event: string; readonly payload?: unknown; readonly key?: string; readonly idempotencyKey?: string };

/**
 * Publishes an event to every run that waits for it, and starts the workflows that it triggers; as an activity of the engine's own: it resolves when all of
 * that is durable, and is done once.
 */
export function publish<P>(
  event: EventDef<unknown, P>,
  ...[payload, given = noOptions]: Args<P, PublishOptions & CallOptions>
): ActivityEffect<void> {
  if (typeof event !== "object" || event === null || typeof event.name !== "string")
    throw new WovyrError("publish takes what `event(name, schema?)` returned as its first argument", { code: "INVALID_OPTION" });
  const what = `publish(${event.name})`;
  checkOptions(given, ["key", "idempotencyKey", ...callOptionNames], what);
  const { key, idempotencyKey, ...options } = given;
  checkCallOptions(options, what);
  if (idempotencyKey !== undefined) checkedKey(idempotencyKey);
  parse(event.schema, payload, `payload of event "${event.name}"`);
  const input: PublishInput = {
    event: event.name,
    ...(payload !== undefined && { payload }),
    ...(key !== undefined && { key: checkEventKey(key, what) }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  return new ActivityEffect<void>(
    { name: `publish:${event.name}`, builtIn: "publish" },
    input,
    Object.freeze(options),
    captureSite(publish),
  );
}
