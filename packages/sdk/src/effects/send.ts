import type { EventDef } from "../define/event.ts";
import { parse } from "../define/schema.ts";
import type { Args } from "../define/signature.ts";
import { WovyrError } from "../model/errors.ts";
import { checkName } from "../model/name.ts";
import { ActivityEffect } from "./activity.ts";
import { type CallOptions, checkCallOptions, noOptions } from "./call-options.ts";
import { captureSite } from "./effect.ts";

/** What the engine is asked to send. */
export type SendInput = { readonly to: string; readonly event: string; readonly payload?: unknown };

/**
 * Sends an event to another instance, as an activity of the engine's own: it resolves when the other run has recorded it, once. One that reaches no run is kept
 * as a dead letter; with `onExhausted: "fail"` it fails, with the cause INSTANCE_NOT_FOUND or INSTANCE_CLOSED.
 */
export function send<P>(
  instanceId: string,
  event: EventDef<unknown, P>,
  ...[payload, options = noOptions]: Args<P, CallOptions>
): ActivityEffect<void> {
  checkName(instanceId, "the id of the instance that send() is for");
  if (typeof event !== "object" || event === null || typeof event.name !== "string")
    throw new WovyrError("send takes what `event(name, schema?)` returned as its second argument", { code: "INVALID_OPTION" });
  const what = `send(${event.name})`;
  checkCallOptions(options, what);
  parse(event.schema, payload, `payload of event "${event.name}"`);
  const input: SendInput = { to: instanceId, event: event.name, ...(payload !== undefined && { payload }) };
  return new ActivityEffect<void>({ name: `send:${event.name}`, builtIn: "send" }, input, Object.freeze({ ...options }), captureSite(send));
}
