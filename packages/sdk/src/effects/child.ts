import type { Args } from "../define/signature.ts";
import type { Workflow } from "../define/workflow.ts";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import { WovyrError } from "../model/errors.ts";
import type { ParentClosePolicy } from "../model/history.ts";
import { checkName } from "../model/name.ts";
import { checkOptions } from "../model/option.ts";
import { checkPriority, type Priority } from "../model/priority.ts";
import { type Compensation, compensationOf } from "./compensation.ts";
import { type Branch, type CallSite, captureSite, Effect } from "./effect.ts";

export type ChildOptions = {
  readonly id?: string | undefined;
  /** What becomes of the child when its parent closes first; default `"terminate"`. */
  readonly onParentClose?: ParentClosePolicy | undefined;
  /** Who is next when attempts wait. Default: that of the workflow, else that of the parent. */
  readonly priority?: Priority | undefined;
};

/** Runs another workflow; its result is that workflow's output. Its input is validated when it is yielded. */
export class ChildEffect<out T> extends Effect<T> {
  readonly kind = "child";
  readonly workflow: WorkflowDefinition;
  readonly input: unknown;
  readonly id: string | undefined;
  readonly onParentClose: ParentClosePolicy;
  readonly priority: Priority | undefined;
  readonly compensation: Compensation | undefined;

  constructor(
    workflow: WorkflowDefinition,
    input: unknown,
    options: ChildOptions = {},
    site: CallSite = captureSite(ChildEffect),
    compensation?: Compensation,
  ) {
    super(site);
    this.workflow = workflow;
    this.input = input;
    this.id = options.id;
    this.onParentClose = options.onParentClose ?? "terminate";
    this.priority = options.priority;
    this.compensation = compensation;
  }

  /** The same child with what undoes it: `undo` gets its output. A second one takes the place of the first. */
  compensate(undo: (value: T) => Branch): ChildEffect<T> {
    const compensation = compensationOf(undo, {}, `child(${this.workflow.name})`);
    const { id, onParentClose, priority } = this;
    return new ChildEffect<T>(this.workflow, this.input, { id, onParentClose, priority }, this.site, compensation);
  }
}

const policies: readonly string[] = ["terminate", "cancel", "abandon"] satisfies ParentClosePolicy[];

/** Runs another workflow and waits for it; throws `WorkflowError` when it does not complete. */
export function child<I, O>(workflow: Workflow<I, O>, ...args: Args<I, ChildOptions>): ChildEffect<O> {
  const [input, options = {}] = args;
  const definition = definitionOf(workflow);
  const what = `child(${definition.name})`;
  checkOptions(options, ["id", "onParentClose", "priority"], what);
  if (options.id !== undefined) checkName(options.id, `the id of ${what}`);
  if (options.priority !== undefined) checkPriority(options.priority, `the priority of ${what}`);
  if (options.onParentClose !== undefined && !policies.includes(options.onParentClose)) {
    throw new WovyrError(`${what}: onParentClose must be one of ${policies.join(", ")}`, { code: "INVALID_OPTION" });
  }
  return new ChildEffect<O>(definition, input, options, captureSite(child));
}

function definitionOf(workflow: unknown): WorkflowDefinition {
  if (typeof workflow === "object" && workflow !== null && "definition" in workflow) return workflow.definition as WorkflowDefinition;
  const name = (workflow as { activity?: unknown } | null | undefined)?.activity;
  const found = typeof name === "string" ? `; ${name} is an activity, which is called: \`yield* ${name}(input)\`` : "";
  throw new WovyrError(`child takes what \`workflow(…)\` returned${found}`, { code: "INVALID_OPTION" });
}
