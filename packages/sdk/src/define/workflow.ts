import type { Flow } from "../effects/effect.ts";
import { type CompensationOptions, checkCompensation, defaultCompensation, withCompensation } from "../model/compensation-policy.ts";
import { type ConcurrencyOptions, resolveConcurrency } from "../model/concurrency.ts";
import { type DebounceOptions, resolveDebounce } from "../model/debounce.ts";
import { type ErrorClass, WovyrError } from "../model/errors.ts";
import { checkOnExhausted, type OnExhausted } from "../model/exhaustion.ts";
import { checkName } from "../model/name.ts";
import { checkedFor, checkOptions, wholeNumber } from "../model/option.ts";
import { checkPriority, type Priority } from "../model/priority.ts";
import { type RetryPolicy, resolveRetry } from "../model/retry-policy.ts";
import { resolveRunTimeouts, type WorkflowTimeout } from "../model/run-timeouts.ts";
import { resolveSingleton, type SingletonOptions } from "../model/singleton.ts";
import { rememberDefinition } from "../runtime/definition-line.ts";
import type { EventDef } from "./event.ts";
import { checkErrorClasses, functionKind } from "./function-kind.ts";
import { checkSchema, type InputOf, type MaybeSchema, type OutputOf, type Schema } from "./schema.ts";
import type { ArgOf, EffectsIn, Given, InOr, Nothing, OthersIn, OutOr, Returns, Schemas } from "./signature.ts";
import type { WorkflowContext } from "./workflow-context.ts";
import type { WorkflowDefinition } from "./workflow-definition.ts";

export type { WorkflowDefinition } from "./workflow-definition.ts";

declare const takes: unique symbol;
declare const gives: unique symbol;

export interface Workflow<in I, out O> {
  readonly name: string;
  readonly version: string;
  readonly definition: WorkflowDefinition;
  readonly [takes]: (input: I) => void;
  readonly [gives]: O;
}
export type AnyWorkflow = Workflow<never, unknown>;

/** A workflow without code: for clients that must not import it, and for workflows that call each other. */
export interface WorkflowContract<in out I, in out O> extends Workflow<I, O> {
  implement(run: (input: I, ctx: WorkflowContext<Record<string, unknown>, I>) => Flow<O>): Workflow<I, O>;
}

export type WorkflowOptions = {
  /** Default `"1"`. */
  readonly version?: string | undefined;
  /** Classes that errors come back as, matched by name. */
  readonly errors?: readonly ErrorClass[] | undefined;
  /** How a run that failed is tried again: as a new run of the same id, with the same input. Default: it is not. */
  readonly retry?: RetryPolicy | undefined;
  /** How activities are tried again; what the activity or the call says goes over it. */
  readonly activityRetry?: RetryPolicy | undefined;
  /** Retries of activities that a run may make in all; the next failure is final. Default: no limit. */
  readonly retryBudget?: number | undefined;
  /** What its activities do when they have failed for good, those apart that undo something; what the activity or the call says goes over it. Default `"fail"`. */
  readonly onExhausted?: OnExhausted | undefined;
  /** Keeps a run that failed, timed out or could not undo everything as a dead letter, for people to see to. Default: it is not kept. */
  readonly deadLetter?: boolean | undefined;
  /** How long it may take; what a start says goes over it. A duration alone is that of the execution. */
  readonly timeout?: WorkflowTimeout | undefined;
  /** Of its runs, and so of their activities and children; what the start says goes over it. Default `"normal"`. */
  readonly priority?: Priority | undefined;
  /** Events that it takes: their payloads are checked when they arrive, whether or not they are awaited yet. */
  readonly events?: readonly EventDef<unknown, never>[] | undefined;
  /** When a run undoes what it did, and how. Default: when it fails, what completed last first. */
  readonly compensation?: CompensationOptions | undefined;
};

/** How many runs there are, and when they begin; `I` is what its function sees as input. */
type Admissions<I> = {
  /** How many runs are at work at once, over all nodes; the others wait for their turn. */
  readonly concurrency?: ConcurrencyOptions<I> | undefined;
  /** One run at a time, or one for each key. Its instance has no other id than the one that follows from that. */
  readonly singleton?: SingletonOptions<I> | undefined;
  /** Starts that come one soon after another are one, with the input of the last. */
  readonly debounce?: DebounceOptions<I> | undefined;
};

/** `I` is what the workflow takes. */
type Triggers<I> = {
  /** Publishing one of these starts an instance: the payload is the input. */
  readonly triggers?: readonly EventDef<NoInfer<I>, never>[] | undefined;
};

// biome-ignore lint/suspicious/noExplicitAny: without a schema the input is what the function says, which is not known here
type Said = any;
type Body<I, O, V> = (
  input: Given<I>,
  ctx: WorkflowContext<V, I extends Schema ? InputOf<I> : Said>,
) => AsyncGenerator<unknown, Returns<O>, unknown>;
// biome-ignore lint/suspicious/noExplicitAny: only the result of the generator matters here
type Returned<O, F> = O extends Schema ? OutputOf<O> : F extends (...args: never[]) => AsyncGenerator<any, infer R, any> ? R : never;
// biome-ignore lint/suspicious/noExplicitAny: a generator's next-type is contravariant
type WorkflowCheck<F> = F extends (...args: never[]) => AsyncGenerator<infer Y, infer R, any>
  ? [OthersIn<Y>] extends [Nothing]
    ? [EffectsIn<R>] extends [Nothing]
      ? unknown
      : { "this workflow returns an effect: write `return yield* …`": never }
    : { "this workflow yields something that is not an effect": OthersIn<Y> }
  : unknown;

interface WorkflowMaker {
  /** Defines a workflow: an async generator function of effects, recorded and replayed. */
  <F extends Body<undefined, undefined, Record<string, unknown>>>(
    name: string,
    run: F & WorkflowCheck<F>,
  ): Workflow<ArgOf<undefined, F>, Returned<undefined, F>>;
  <
    I extends MaybeSchema = undefined,
    O extends MaybeSchema = undefined,
    V extends object = Record<string, unknown>,
    F extends Body<I, O, V> = Body<I, O, V>,
  >(
    name: string,
    options: WorkflowOptions &
      Schemas<I, O> &
      Triggers<ArgOf<I, F>> &
      Admissions<Given<I>> & {
        /** Makes the initial `ctx.variables`. */ variables?: () => V;
      },
    run: F & WorkflowCheck<F>,
  ): Workflow<ArgOf<I, F>, Returned<O, F>>;
  /** Declares a workflow without its code. */
  contract<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined>(
    name: string,
    options: WorkflowOptions & Schemas<I, O> & Triggers<InOr<I, void>> & Admissions<Given<I>>,
  ): WorkflowContract<InOr<I, void>, OutOr<O, void>>;
}

type AnyOptions = WorkflowOptions &
  Schemas<MaybeSchema, MaybeSchema> &
  Triggers<unknown> &
  Admissions<never> & { variables?: () => object };
type AnyRun = NonNullable<WorkflowDefinition["run"]>;

function define(name: string, ...rest: [run: unknown] | [options: AnyOptions, run: unknown]): AnyWorkflow {
  const [options, run] = rest.length === 1 ? [{}, rest[0]] : rest;
  return frozen(definitionOf(name, options, run));
}

function contract(name: string, options: AnyOptions = {}): AnyWorkflow {
  const definition = definitionOf(name, options);
  const implement = (run: unknown) => frozen(Object.freeze({ ...definition, run: checkedRun(run, name) }));
  return frozen(definition, { implement });
}

export const workflow = Object.assign(define, {
  contract,
}) as unknown as WorkflowMaker;

function frozen(definition: WorkflowDefinition, extra?: object): AnyWorkflow {
  return Object.freeze({
    name: definition.name,
    version: definition.version,
    definition,
    ...extra,
  }) as unknown as AnyWorkflow;
}

const known = [
  "version",
  "input",
  "output",
  "variables",
  "errors",
  "retry",
  "activityRetry",
  "retryBudget",
  "onExhausted",
  "deadLetter",
  "timeout",
  "priority",
  "concurrency",
  "singleton",
  "debounce",
  "events",
  "triggers",
  "compensation",
];

function definitionOf(name: string, options: AnyOptions, ...run: [] | [run: unknown]): WorkflowDefinition {
  checkName(name, "the name of a workflow");
  const what = `workflow ${name}`;
  checkOptions(options, known, what);
  checkSchema(options.input, `the input of ${what}`);
  checkSchema(options.output, `the output of ${what}`);
  checkErrorClasses(options.errors, what);
  if (options.variables !== undefined && functionKind(options.variables) !== "function") {
    throw new WovyrError(`the variables of ${what} must be a function that makes them: \`variables: () => ({ … })\``, {
      code: "INVALID_DEFINITION",
    });
  }
  const { concurrency, singleton, debounce } = options;
  if (singleton !== undefined && debounce !== undefined)
    throw new WovyrError(
      `${what} is a singleton and debounced: a start that is put off cannot take the id of a run that is at work. Say one of them`,
      {
        code: "INVALID_OPTION",
      },
    );
  if (options.priority !== undefined) checkPriority(options.priority, `the priority of ${what}`);
  checkEvents(options.events, `the events of ${what}`);
  checkEvents(options.triggers, `the triggers of ${what}`);
  if (options.compensation !== undefined) checkCompensation(options.compensation, `the compensation of ${what}`);
  const { retry, activityRetry, retryBudget, onExhausted, deadLetter, timeout } = options;
  checkedFor(what, () => resolveRetry(retry));
  checkedFor(`the activityRetry of ${what}`, () => resolveRetry(activityRetry));
  if (retryBudget !== undefined) wholeNumber(retryBudget, 0, `the retryBudget of ${what}`);
  if (onExhausted !== undefined) checkOnExhausted(onExhausted, what);
  if (deadLetter !== undefined && typeof deadLetter !== "boolean")
    throw new WovyrError(`deadLetter of ${what} must be true or false`, { code: "INVALID_OPTION" });
  return Object.freeze({
    name,
    version: options.version === undefined ? "1" : checkName(options.version, `the version of ${what}`),
    ...(options.input !== undefined && { input: options.input }),
    ...(options.output !== undefined && { output: options.output }),
    ...(options.variables !== undefined && { variables: options.variables }),
    ...(options.errors !== undefined && {
      errors: Object.freeze([...options.errors]),
    }),
    ...(retry !== undefined && { retry: Object.freeze({ ...retry }) }),
    ...(activityRetry !== undefined && { activityRetry: Object.freeze({ ...activityRetry }) }),
    ...(retryBudget !== undefined && { retryBudget }),
    ...(onExhausted !== undefined && { onExhausted }),
    ...(deadLetter !== undefined && { deadLetter }),
    ...(timeout !== undefined && { timeout: resolveRunTimeouts(timeout, `the timeout of ${what}`) }),
    ...(options.priority !== undefined && { priority: options.priority }),
    ...(concurrency !== undefined && { concurrency: resolveConcurrency(concurrency, `the concurrency of ${what}`) }),
    ...(singleton !== undefined && { singleton: resolveSingleton(singleton, `the singleton of ${what}`) }),
    ...(debounce !== undefined && { debounce: resolveDebounce(debounce, `the debounce of ${what}`) }),
    ...(options.events !== undefined && { events: Object.freeze([...options.events]) }),
    ...(options.triggers !== undefined && { triggers: Object.freeze([...options.triggers]) }),
    ...(options.compensation !== undefined && { compensation: withCompensation(defaultCompensation, options.compensation) }),
    ...(run.length === 1 && { run: checkedRun(run[0], name) }),
  });
}

function checkEvents(events: unknown, what: string): void {
  if (events === undefined || (Array.isArray(events) && events.every(isEvent))) return;
  throw new WovyrError(`${what} must be an array of what \`event(name, schema)\` returned`, { code: "INVALID_DEFINITION" });
}

function isEvent(value: unknown): value is EventDef<unknown, never> {
  return typeof value === "object" && value !== null && "name" in value && typeof value.name === "string";
}

const instead: Readonly<Record<string, string>> = {
  "async function": "is an async function: effects are yielded, not awaited",
  "function*": "is a generator function without `async`",
  none: "has no function",
};

function checkedRun(run: unknown, name: string): AnyRun {
  const kind = functionKind(run) ?? "none";
  // A plain function may return the generator of another, or be what an older compile target made of an async generator.
  if (kind === "async function*" || kind === "function") {
    rememberDefinition(run as AnyRun);
    return run as AnyRun;
  }
  throw new WovyrError(`workflow ${name} ${instead[kind]}; write \`async function* (input, ctx) { … }\``, { code: "INVALID_DEFINITION" });
}
