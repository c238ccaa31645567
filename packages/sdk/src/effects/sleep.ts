import { type Duration, instant, milliseconds } from "../model/duration.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

/** Waits for a length of time or until a point in time; exactly one of the two is given. */
export class SleepEffect extends Effect<void> {
  readonly kind = "sleep";
  /** Milliseconds. */
  readonly delay: number | undefined;
  /** Milliseconds since the epoch. */
  readonly until: number | undefined;

  constructor(time: { delay: number } | { until: number }, site: CallSite = captureSite(SleepEffect)) {
    super(site);
    this.delay = "delay" in time ? time.delay : undefined;
    this.until = "until" in time ? time.until : undefined;
  }
}

/** Waits durably; throws INVALID_DURATION. */
export function sleep(delay: Duration): SleepEffect {
  return new SleepEffect({ delay: milliseconds(delay, "sleep") }, captureSite(sleep));
}

/** Waits durably until a `Date` or RFC 3339 text; a time that has passed is due at once. Throws INVALID_DURATION. */
export function sleepUntil(at: Date | string): SleepEffect {
  return new SleepEffect({ until: instant(at, "sleepUntil") }, captureSite(sleepUntil));
}
