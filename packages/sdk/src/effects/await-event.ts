import type { EventDef } from "../define/event.ts";
import { type Duration, milliseconds } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOptions } from "../model/option.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

export type AwaitEventOptions<T> = {
  /** Takes the first event that it says true to; others stay for whoever waits next. */
  readonly match?: ((payload: T) => boolean) | undefined;
  readonly timeout?: Duration | undefined;
};

/** Waits for one event; its result is the payload. */
export class EventEffect<out T> extends Effect<T> {
  readonly kind = "event";
  readonly event: EventDef<unknown, never>;
  readonly match: ((payload: unknown) => boolean) | undefined;
  /** Milliseconds. */
  readonly timeout: number | undefined;

  constructor(
    event: EventDef<unknown, never>,
    options: {
      match?: ((payload: unknown) => boolean) | undefined;
      timeout?: number | undefined;
    } = {},
    site: CallSite = captureSite(EventEffect),
  ) {
    super(site);
    this.event = event;
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
  checkOptions(options, ["match", "timeout"], what);
  const { match, timeout } = options;
  if (match !== undefined && typeof match !== "function") {
    throw new WovyrError(`${what}: match must be a function of the payload`, {
      code: "INVALID_OPTION",
    });
  }
  return new EventEffect<T>(
    event,
    {
      match: match as ((payload: unknown) => boolean) | undefined,
      timeout: timeout === undefined ? undefined : milliseconds(timeout, `${what} timeout`),
    },
    captureSite(awaitEvent),
  );
}
