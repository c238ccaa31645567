import { functionKind } from "../define/function-kind.ts";
import { type Duration, milliseconds } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOptions } from "../model/option.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

export type ConditionOptions = { readonly timeout?: Duration | undefined };

/** Waits until the workflow's own state satisfies a question. */
export class ConditionEffect extends Effect<void> {
  readonly kind = "condition";
  readonly until: () => boolean;
  /** Milliseconds. */
  readonly timeout: number | undefined;

  constructor(until: () => boolean, timeout: number | undefined, site: CallSite = captureSite(ConditionEffect)) {
    super(site);
    this.until = until;
    this.timeout = timeout;
  }
}

/**
 * Waits until `until` says true: asked at once, then whenever everything that came in together has been handled. Throws `TimeoutError` when `timeout`
 * passes first. The question must not change anything.
 */
export function condition(until: () => boolean, options: ConditionOptions = {}): ConditionEffect {
  if (functionKind(until) !== "function")
    throw new WovyrError("condition takes a synchronous function that returns a boolean: `condition(() => approved)`", {
      code: "INVALID_OPTION",
    });
  checkOptions(options, ["timeout"], "condition");
  const { timeout } = options;
  return new ConditionEffect(until, timeout === undefined ? undefined : milliseconds(timeout, "condition timeout"), captureSite(condition));
}
