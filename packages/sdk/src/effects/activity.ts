import type { ActivityDefinition } from "../define/activity-definition.ts";
import { checkQueued, checkUnlimited } from "../model/task-queue.ts";
import { type CallOptions, checkCallOptions } from "./call-options.ts";
import { type CompensateOptions, type CompensateWhen, type Compensation, compensationOf, type Undone } from "./compensation.ts";
import { type Branch, type CallSite, captureSite, Effect } from "./effect.ts";

export { noOptions } from "./call-options.ts";

/** One call of an activity. Its input is validated when it is yielded. */
export class ActivityEffect<out T> extends Effect<T> {
  readonly kind = "activity";
  readonly definition: ActivityDefinition;
  readonly input: unknown;
  readonly options: CallOptions;
  readonly compensation: Compensation | undefined;

  constructor(
    definition: ActivityDefinition,
    input: unknown,
    options: CallOptions,
    site: CallSite = captureSite(ActivityEffect),
    compensation?: Compensation,
  ) {
    super(site);
    this.definition = definition;
    this.input = input;
    this.options = options;
    this.compensation = compensation;
  }

  /** The same call with options, which add to those it has. */
  with(options: CallOptions): ActivityEffect<T> {
    checkCallOptions(options, `activity ${this.definition.name}`, this.definition.semantics);
    if (options.queue !== undefined) {
      checkQueued(this.definition.semantics, `activity ${this.definition.name}`);
      checkUnlimited(this.definition, `activity ${this.definition.name}`);
    }
    return new ActivityEffect<T>(this.definition, this.input, Object.freeze({ ...this.options, ...options }), this.site, this.compensation);
  }

  /** The same call with what undoes it: `undo` gets what it came to. A second one takes the place of the first. */
  compensate<W extends CompensateWhen = "completed">(
    undo: (value: Undone<T, W>) => Branch,
    options: CompensateOptions<W> = {},
  ): ActivityEffect<T> {
    const compensation = compensationOf(undo, options, `activity ${this.definition.name}`);
    return new ActivityEffect<T>(this.definition, this.input, this.options, this.site, compensation);
  }
}
