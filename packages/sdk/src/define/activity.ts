import { ActivityEffect, noOptions } from "../effects/activity.ts";
import { captureSite } from "../effects/effect.ts";
import { type ActivityTimeouts, resolveTimeouts } from "../model/activity-timeouts.ts";
import { type CircuitBreakerOptions, resolveCircuitBreaker } from "../model/circuit-breaker.ts";
import { type ConcurrencyOptions, resolveConcurrency } from "../model/concurrency.ts";
import { type ErrorClass, WovyrError } from "../model/errors.ts";
import { checkOnExhausted, type OnExhausted } from "../model/exhaustion.ts";
import type { Classifier } from "../model/failure-kind.ts";
import { checkName } from "../model/name.ts";
import { checkedFor, checkOptions } from "../model/option.ts";
import { checkPriority, type Priority } from "../model/priority.ts";
import { type RateLimitOptions, resolveRateLimit } from "../model/rate-limit.ts";
import { type RetryPolicy, resolveRetry } from "../model/retry-policy.ts";
import { checkSemantics, type Semantics } from "../model/semantics.ts";
import { checkLabels, checkQueued } from "../model/task-queue.ts";
import type { ContextOf } from "./activity-context.ts";
import type { ActivityDefinition } from "./activity-definition.ts";
import { checkClassifier, checkErrorClasses, functionKind } from "./function-kind.ts";
import { checkSchema, type MaybeSchema, type OutputOf, type Schema } from "./schema.ts";
import type { ArgOf, Awaitable, EffectsIn, Given, InOr, Nothing, OutOr, Returns, Schemas } from "./signature.ts";

export type { ActivityDefinition } from "./activity-definition.ts";

/** Called in a workflow, it makes the effect that runs it. */
export interface Activity<in I, out O> {
  (input: I): ActivityEffect<O>;
  /** Its name. */
  readonly activity: string;
  readonly definition: ActivityDefinition;
}

/** An activity without code: for workers elsewhere, or to be implemented later. */
export interface ActivityContract<in out I, in out O, S extends Semantics = "atLeastOnce"> extends Activity<I, O> {
  implement(fn: (input: I, ctx: ContextOf<S>) => Awaitable<O>): Activity<I, O>;
}

/** `I` is what its function sees as input. */
export type ActivityOptions<S extends Semantics = Semantics, I = never> = {
  readonly retry?: RetryPolicy | undefined;
  readonly timeout?: ActivityTimeouts | undefined;
  /** Default `"atLeastOnce"`. */
  readonly semantics?: S | undefined;
  /** When it has failed for good: it fails (default), or waits until a person decides. Undefined leaves it to the workflow. */
  readonly onExhausted?: OnExhausted | undefined;
  /** Says of what kind its failures are; undefined leaves it to the orchestrator's `classify`, then to what the error shows. */
  readonly classify?: Classifier | undefined;
  /** Holds attempts back while those before them fail: per tenant, in this process. */
  readonly circuitBreaker?: CircuitBreakerOptions | undefined;
  /** The task queue whose workers run it, instead of the process of the orchestrator. */
  readonly queue?: string | undefined;
  /** Labels that a worker has to have to be given it. */
  readonly requires?: readonly string[] | undefined;
  /** Who is next when attempts wait; what the call says goes over it. Default: that of the run. */
  readonly priority?: Priority | undefined;
  /** How many attempts run at once, over all nodes. */
  readonly concurrency?: ConcurrencyOptions<I> | undefined;
  /** How many attempts begin within a time, over all nodes. */
  readonly rateLimit?: RateLimitOptions<I> | undefined;
  /** Classes that errors come back as in the workflow, matched by name. */
  readonly errors?: readonly ErrorClass[] | undefined;
};

type Run<I, O, S extends Semantics = "atLeastOnce"> = (input: Given<I>, ctx: ContextOf<S>) => Awaitable<Returns<O>>;
type Result<O, F> = O extends Schema ? OutputOf<O> : F extends (...args: never[]) => infer R ? Awaited<R> : never;
type ActivityCheck<F> = F extends (...args: never[]) => infer R
  ? [EffectsIn<Awaited<R>>] extends [Nothing]
    ? unknown
    : { "an activity cannot return an effect": never }
  : unknown;

interface ActivityMaker {
  /** Defines an activity: code that may touch the world, runs at least once, and whose result is recorded once. */
  <F extends Run<undefined, undefined>>(name: string, fn: F & ActivityCheck<F>): Activity<ArgOf<undefined, F>, Result<undefined, F>>;
  <
    I extends MaybeSchema = undefined,
    O extends MaybeSchema = undefined,
    S extends Semantics = "atLeastOnce",
    F extends Run<I, O, S> = Run<I, O, S>,
  >(
    name: string,
    options: ActivityOptions<S, Given<I>> & Schemas<I, O>,
    fn: F & ActivityCheck<F>,
  ): Activity<ArgOf<I, F>, Result<O, F>>;
  /** Declares an activity without its code. */
  contract<I extends MaybeSchema = undefined, O extends MaybeSchema = undefined, S extends Semantics = "atLeastOnce">(
    name: string,
    options: ActivityOptions<S, Given<I>> & Schemas<I, O>,
  ): ActivityContract<InOr<I, void>, OutOr<O, void>, S>;
}

type AnyOptions = ActivityOptions & Schemas<MaybeSchema, MaybeSchema>;
type AnyRun = NonNullable<ActivityDefinition["run"]>;

function define(name: string, ...rest: [fn: unknown] | [options: AnyOptions, fn: unknown]): Activity<unknown, unknown> {
  const [options, fn] = rest.length === 1 ? [{}, rest[0]] : rest;
  return callable(definitionOf(name, options, fn));
}

function contract(name: string, options: AnyOptions = {}): ActivityContract<unknown, unknown> {
  const definition = definitionOf(name, options);
  const implement = (fn: unknown) => callable(Object.freeze({ ...definition, run: checkedRun(fn, name) }));
  return callable(definition, { implement });
}

export const activity = Object.assign(define, { contract }) as ActivityMaker;

function callable<Extra extends object>(definition: ActivityDefinition, extra?: Extra): Activity<unknown, unknown> & Extra {
  const call = (input: unknown) => new ActivityEffect(definition, input, noOptions, captureSite(call));
  Object.defineProperty(call, "name", { value: definition.name });
  return Object.freeze(Object.assign(call, { activity: definition.name, definition, ...extra })) as unknown as Activity<unknown, unknown> &
    Extra;
}

const known = [
  "input",
  "output",
  "retry",
  "timeout",
  "semantics",
  "onExhausted",
  "classify",
  "circuitBreaker",
  "queue",
  "requires",
  "priority",
  "concurrency",
  "rateLimit",
  "errors",
];

function definitionOf(name: string, options: AnyOptions, ...fn: [] | [fn: unknown]): ActivityDefinition {
  checkName(name, "the name of an activity");
  const what = `activity ${name}`;
  checkOptions(options, known, what);
  checkSchema(options.input, `the input of ${what}`);
  checkSchema(options.output, `the output of ${what}`);
  checkErrorClasses(options.errors, what);
  const { retry, timeout, semantics, onExhausted, classify, circuitBreaker, queue, requires, priority, concurrency, rateLimit } = options;
  checkedFor(what, () => resolveRetry(retry));
  checkedFor(what, () => resolveTimeouts(timeout));
  if (semantics !== undefined) checkSemantics(semantics, what);
  if (onExhausted !== undefined) checkOnExhausted(onExhausted, what);
  checkClassifier(classify, what);
  if (circuitBreaker !== undefined) checkedFor(what, () => resolveCircuitBreaker(circuitBreaker));
  if (queue !== undefined) {
    checkName(queue, `the queue of ${what}`);
    checkQueued(options, what);
  }
  if (requires !== undefined) {
    checkLabels(requires, `what ${what} requires`);
    if (queue === undefined)
      throw new WovyrError(
        `${what} requires labels of its worker and names no queue, so that the orchestrator itself would run it: give it a queue as well`,
        { code: "INVALID_OPTION" },
      );
  }
  if (priority !== undefined) checkPriority(priority, `the priority of ${what}`);
  return Object.freeze({
    name,
    ...(options.input !== undefined && { input: options.input }),
    ...(options.output !== undefined && { output: options.output }),
    ...(retry !== undefined && { retry: Object.freeze({ ...retry }) }),
    ...(timeout !== undefined && { timeout: Object.freeze({ ...timeout }) }),
    ...(semantics !== undefined && { semantics }),
    ...(onExhausted !== undefined && { onExhausted }),
    ...(classify !== undefined && { classify }),
    ...(circuitBreaker !== undefined && { circuitBreaker: Object.freeze({ ...circuitBreaker }) }),
    ...(queue !== undefined && { queue }),
    ...(requires !== undefined && { requires: Object.freeze([...requires]) }),
    ...(priority !== undefined && { priority }),
    ...(concurrency !== undefined && { concurrency: resolveConcurrency(concurrency, `the concurrency of ${what}`) }),
    ...(rateLimit !== undefined && { rateLimit: resolveRateLimit(rateLimit, `the rateLimit of ${what}`) }),
    ...(options.errors !== undefined && {
      errors: Object.freeze([...options.errors]),
    }),
    ...(fn.length === 1 && { run: checkedRun(fn[0], name) }),
  });
}

function checkedRun(fn: unknown, name: string): AnyRun {
  switch (functionKind(fn)) {
    case "function":
    case "async function":
      return fn as AnyRun;
    case "function*":
    case "async function*":
      throw new WovyrError(`activity ${name} is a generator function: activities yield no effects, write \`async (input, ctx) => …\``, {
        code: "INVALID_DEFINITION",
      });
    case undefined:
      throw new WovyrError(`activity ${name} has no function: write \`activity("${name}", options?, async (input, ctx) => …)\``, {
        code: "INVALID_DEFINITION",
      });
  }
}
