import type { ActivityDefinition } from "../define/activity-definition.ts";
import { type CallOptions, checkCallOptions } from "./call-options.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

export { noOptions } from "./call-options.ts";

/** One call of an activity. Its input is validated when it is yielded. */
export class ActivityEffect<out T> extends Effect<T> {
  readonly kind = "activity";
  readonly definition: ActivityDefinition;
  readonly input: unknown;
  readonly options: CallOptions;

  constructor(definition: ActivityDefinition, input: unknown, options: CallOptions, site: CallSite = captureSite(ActivityEffect)) {
    super(site);
    this.definition = definition;
    this.input = input;
    this.options = options;
  }

  /** The same call with options, which add to those it has. */
  with(options: CallOptions): ActivityEffect<T> {
    checkCallOptions(options, `activity ${this.definition.name}`);
    return new ActivityEffect<T>(this.definition, this.input, Object.freeze({ ...this.options, ...options }), this.site);
  }
}
