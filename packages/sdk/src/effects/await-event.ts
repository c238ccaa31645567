import type { EventDef } from "../define/event.ts";
import { type Duration, milliseconds } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkEventKey } from "../model/event-key.ts";
import { checkOptions } from "../model/option.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

export type AwaitEventOptions<T> = {
  /** Waits for what is published with this key, kept publications included, and for what is sent to the instance. */
  readonly key?: string | undefined;
  /** Takes the first event that it says true to; others stay for whoever waits next. */
  readonly match?: ((payload: T) => boolean) | undefined;
  readonly timeout?: Duration | undefined;
};

/** Waits for one event; its result is the payload. */
export class EventEffect<out T> extends Effect<T> {
  readonly kind = "event";
  readonly event: EventDef<unknown, never>;
  readonly key: string | undefined;
  readonly match: ((payload: unknown) => boolean) | undefined;
  /** Milliseconds. */
  readonly timeout: number | undefined;

  constructor(
    event: EventDef<unknown, never>,
    options: {
      key?: string | undefined;
      match?: ((payload: unknown) => boolean) | undefined;
      timeout?: number | undefined;
    } = {},
    site: CallSite = captureSite(EventEffect),
  ) {
    super(site);
    this.event = event;
    this.key = options.key;
    this.match = options.match;
    this.timeout = options.timeout;
  }
}

/** Waits for an event; throws `TimeoutError` when `timeout` passes first. */
export function awaitEvent<T>(event: EventDef<T, never>, options: AwaitEventOptions<T> = {}): EventEffect<T> {
  if (typeof event !== "object" || event === null || typeof event.name !== "string") {
    throw new WovyrError("awaitEvent takes what `event(name, schema?)` returned", { code: "INVALID_OPTION" });
  }
  const what = `awaitEvent(${event.name})`;
  checkOptions(options, ["key", "match", "timeout"], what);
  const { key, match, timeout } = options;
  if (match !== undefined && typeof match !== "function") {
    throw new WovyrError(`${what}: match must be a function of the payload`, {
      code: "INVALID_OPTION",
    });
  }
  return new EventEffect<T>(
    event,
    {
      key: key === undefined ? undefined : checkEventKey(key, what),
      match: match as ((payload: unknown) => boolean) | undefined,
      timeout: timeout === undefined ? undefined : milliseconds(timeout, `${what} timeout`),
    },
    captureSite(awaitEvent),
  );
}
