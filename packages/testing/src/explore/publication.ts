import type { EventDef, PublishOptions } from "@wovyr/sdk";
import { type Args, checkEventKey, type StartEvent } from "@wovyr/sdk/internal";

/** An event that happens while a run is explored: sent to it (made by `delivery`), or published (made by `publication`). */
export type ExploredEvent = StartEvent & { readonly published?: { readonly key?: string } };

/** An event for the `events` of `explore` that is published, to whoever waits for it. */
export function publication<P>(event: EventDef<unknown, P>, ...[payload, options = {}]: Args<P, PublishOptions>): ExploredEvent {
  const { key, idempotencyKey } = options;
  return {
    name: event.name,
    ...(payload !== undefined && { payload }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    published: key === undefined ? {} : { key: checkEventKey(key, `publication(${event.name})`) },
  };
}
