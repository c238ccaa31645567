/**
 * What a run does when it is spoken to: handlers of events and updates, answers to queries.
 *
 * 1. A handler that yields or returns effects is a fiber with a root of its own: `on:name/n` for the n-th event of a name, `u:n` for the n-th update.
 * 2. An update is judged by its validator before anything is recorded; what is recorded is handled, and its outcome is recorded too. One that was recorded
 *    while the run was held up is judged when its turn comes, and fails when it is refused.
 * 3. A query changes nothing and is never recorded.
 * 4. A handler of events that throws fails the run. Handlers that have not ended when the workflow's function returns are cancelled; their updates fail.
 */

import type { EventDef } from "../define/event.ts";
import { functionKind } from "../define/function-kind.ts";
import type { Query } from "../define/query.ts";
import { parse } from "../define/schema.ts";
import type { Update } from "../define/update.ts";
import { isFlow } from "../effects/branches.ts";
import { Effect } from "../effects/effect.ts";
import { ApiError, AuthoringError, CancelledError, WovyrError } from "../model/errors.ts";
import { failureOf } from "../model/failure.ts";
import type { EffectId, Incoming, Payload } from "../model/history.ts";
import { decodePayload, encodePayload } from "../model/payload.ts";
import { checkAnswer, isPromise } from "./answer.ts";
import { closing } from "./closing.ts";
import type { Commands } from "./commands.ts";
import type { BufferedEvent } from "./event-buffer.ts";
import type { Guarding } from "./guard.ts";
import type { Logger } from "./log-line.ts";
import { type Done, fulfilled, type Operation, type Outcome, rejected } from "./operation.ts";
import { TaskState } from "./task.ts";
import { collecting, markRun } from "./unrun.ts";

/** Handlers that one warning names. */
const listedHandlers = 20;

type UpdateFact = Extract<Incoming, { type: "UpdateRequested" }>;
export type EventHandler = (payload: never) => unknown;
export type QueryHandler = (input: never) => unknown;
export type UpdateHandler = { readonly validate?: ((input: never) => void) | undefined; readonly handler: (input: never) => unknown };

/** What handlers need of the execution around them. */
export interface HandlersOwner extends Logger, Guarding {
  newFiber(path: EffectId, generator: AsyncGenerator<unknown, unknown, unknown>, done: Done): Operation;
  /** Lets a task end with the workflow's function. */
  own(task: TaskState): void;
  /** Effects that a plain handler made: whether they are used is judged when the workflow's function ends. */
  adopt(made: readonly Effect<unknown>[]): void;
  /** The run fails with this error. */
  fail(error: unknown): void;
  /** A handler was registered: kept events may be for it. */
  handles(event: string): void;
  /** The run that takes the place of this one, which ends now: what is open goes on there. */
  readonly resetTo: string | undefined;
}

export class Handlers {
  readonly #commands: Commands;
  readonly #owner: HandlersOwner;
  readonly #events = new Map<string, { readonly event: EventDef<unknown, never>; readonly handler: EventHandler; count: number }>();
  readonly #queries = new Map<string, { readonly query: Query<never, unknown>; readonly handler: QueryHandler }>();
  readonly #updates = new Map<string, { readonly update: Update<never, unknown>; readonly handler: UpdateHandler }>();
  #updateCount = 0;
  #open = 0;
  /** What was handled when the workflow's function ended, and is not any more. */
  readonly #cutOff: string[] = [];

  constructor(commands: Commands, owner: HandlersOwner) {
    this.#commands = commands;
    this.#owner = owner;
  }

  /** Whether every handler has ended. */
  get finished(): boolean {
    return this.#open === 0;
  }

  on(event: EventDef<unknown, never>, handler: EventHandler): void {
    checkDefinition(event, "ctx.on", "event(name, schema?)");
    checkHandler(handler, `ctx.on(${event.name})`);
    if (this.#events.has(event.name)) throw twice(`event "${event.name}"`, "ctx.on");
    this.#events.set(event.name, { event, handler, count: 0 });
    this.#owner.handles(event.name);
  }

  onQuery(query: Query<never, unknown>, handler: QueryHandler): void {
    checkDefinition(query, "ctx.onQuery", "query(name, { input, output })");
    if (functionKind(handler) !== "function")
      throw new WovyrError(`ctx.onQuery(${query.name}) takes a synchronous function: a query reads, it cannot wait`, {
        code: "INVALID_DEFINITION",
      });
    if (this.#queries.has(query.name)) throw twice(`query "${query.name}"`, "ctx.onQuery");
    this.#queries.set(query.name, { query, handler });
  }

  onUpdate(update: Update<never, unknown>, handler: UpdateHandler): void {
    const what = `ctx.onUpdate(${update.name})`;
    if (typeof handler !== "object" || handler === null)
      throw new WovyrError(`${what} takes { validate?, handler }`, { code: "INVALID_DEFINITION" });
    checkHandler(handler.handler, what);
    checkDefinition(update, what, "update(name, { input, output })");
    if (handler.validate !== undefined && functionKind(handler.validate) !== "function")
      throw new WovyrError(`the validate of ${what} must be a synchronous function that throws what is wrong`, {
        code: "INVALID_DEFINITION",
      });
    if (this.#updates.has(update.name)) throw twice(`update "${update.name}"`, "ctx.onUpdate");
    this.#updates.set(update.name, { update, handler });
  }

  /** The function has returned, and those that were still at work were cancelled: whoever looks at the log learns which. */
  warnOfCutOff(): void {
    const count = this.#cutOff.length;
    if (count === 0) return;
    const listed = `${this.#cutOff.slice(0, listedHandlers).join(", ")}${count > listedHandlers ? ` and ${count - listedHandlers} more` : ""}`;
    this.#owner.log(
      "warn",
      `the workflow's function ended while handlers were at work, which were cancelled: ${listed}. Let it wait for them: \`yield* condition(() => ctx.handlersFinished)\``,
      { handlers: count },
    );
  }

  /** The definition of an event that is handled. */
  eventOf(name: string): EventDef<unknown, never> | undefined {
    return this.#events.get(name)?.event;
  }

  // ── events ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Handles an event that no wait took; false when there is no handler for it, or it does not fit. */
  take(event: BufferedEvent): boolean {
    const known = this.#events.get(event.name);
    if (known === undefined) return false;
    let value: unknown;
    try {
      value = parse(known.event.schema, decodePayload(event.payload), `payload of event "${event.name}"`);
    } catch (error) {
      this.#owner.log("warn", `event "${event.name}" does not fit what its handler takes and stays in the buffer`, {
        event: event.name,
        error,
      });
      return false;
    }
    const path = `on:${event.name}/${known.count++}`;
    this.#commands.record({ type: "EventConsumed", effect: path, message: event.message });
    this.#run(
      path,
      `event "${event.name}"`,
      () => known.handler(value as never),
      (outcome) => {
        if (outcome.ok || outcome.error instanceof CancelledError) return;
        this.#owner.log("error", `the handler of event "${event.name}" failed, and the run with it`, {
          event: event.name,
          error: outcome.error,
        });
        this.#owner.fail(outcome.error);
      },
    );
    return true;
  }

  // ── updates ────────────────────────────────────────────────────────────────────────────────────────────

  /** Why an update cannot be taken: nobody handles it, its input does not fit, or its validator refuses it. */
  refusal(fact: UpdateFact): Error | undefined {
    const known = this.#updates.get(fact.name);
    if (known === undefined) return noHandler("update", fact.name, this.#updates.keys());
    try {
      const input = parse(known.update.input, decodePayload(fact.input), `input of update "${fact.name}"`);
      const said: unknown = collecting(() => known.handler.validate?.(input as never));
      if (isPromise(said)) throw new TypeError("its validator is asynchronous: validate at once, and throw what is wrong");
      checkAnswer(said, () => "its validator");
      if (said === false) throw new TypeError("its validator said false");
      return undefined;
    } catch (error) {
      if (error instanceof WovyrError && error.code === "INVALID_INPUT") return error;
      return new ApiError(`Update "${fact.name}" was refused: ${error instanceof Error ? error.message : String(error)}`, {
        code: "UPDATE_REJECTED",
        cause: error,
      });
    }
  }

  /** What was recorded before anybody could ask its validator. */
  keptUpdate(fact: UpdateFact, refusal: Error | undefined): void {
    if (refusal === undefined) this.update(fact);
    else this.#updateFailed(fact, new ApiError(refusal.message, { code: "UPDATE_REJECTED", cause: refusal }));
  }

  /** The run ends, and has not heard of it. */
  neverBegun(fact: UpdateFact): void {
    this.#updateFailed(
      fact,
      this.#movedOn(fact) ?? new WovyrError(`The run ended before it began with update "${fact.name}".`, { code: "UPDATE_UNFINISHED" }),
    );
  }

  #updateFailed({ message }: UpdateFact, error: unknown): void {
    this.#commands.record({ type: "UpdateFailed", message, failure: failureOf(error) });
  }

  /** Why an update ends whose run is reset. */
  #movedOn({ name }: UpdateFact): WovyrError | undefined {
    const { resetTo } = this.#owner;
    if (resetTo === undefined) return undefined;
    return new WovyrError(`The run was reset before update "${name}" was done; run ${resetTo} goes on with it.`, {
      code: "UPDATE_UNFINISHED",
    });
  }

  update(fact: UpdateFact): void {
    const known = this.#updates.get(fact.name);
    const path = `u:${this.#updateCount++}`;
    const { message } = fact;
    const ended = (outcome: Outcome) => {
      const result = outcome.ok && known !== undefined ? this.#encoded(known.update, outcome.value) : outcome;
      if (result.ok) this.#commands.record({ type: "UpdateCompleted", message, output: result.value as Payload });
      else this.#updateFailed(fact, this.#movedOn(fact) ?? unfinished(fact.name, result.error));
    };
    if (known === undefined) {
      ended(rejected(noHandler("update", fact.name, this.#updates.keys())));
      return;
    }
    let input: unknown;
    try {
      input = parse(known.update.input, decodePayload(fact.input), `input of update "${fact.name}"`);
    } catch (error) {
      ended(rejected(error));
      return;
    }
    this.#run(path, `update "${fact.name}"`, () => known.handler.handler(input as never), ended);
  }

  #encoded(update: Update<never, unknown>, value: unknown): Outcome {
    try {
      const what = `output of update "${update.name}"`;
      return fulfilled(this.#commands.encode(parse(update.output, value, what, "INVALID_OUTPUT"), what));
    } catch (error) {
      return rejected(error);
    }
  }

  // ── queries ────────────────────────────────────────────────────────────────────────────────────────────

  /** Answers a query. Throws HANDLER_NOT_FOUND, INVALID_INPUT, or QUERY_FAILED with what the handler threw. */
  query(name: string, input: Payload, limit: number): Payload {
    const known = this.#queries.get(name);
    if (known === undefined) throw noHandler("query", name, this.#queries.keys());
    const given = parse(known.query.input, decodePayload(input), `input of query "${name}"`);
    const what = `output of query "${name}"`;
    try {
      const value = collecting(() => known.handler(given as never));
      if (isFlow(value) || isPromise(value))
        throw new WovyrError("a query is answered at once: it can neither yield nor wait", { code: "QUERY_FAILED" });
      return encodePayload(parse(known.query.output, value, what, "INVALID_OUTPUT"), { limit, what });
    } catch (error) {
      throw new ApiError(`Query "${name}" failed: ${error instanceof Error ? error.message : String(error)}`, {
        code: "QUERY_FAILED",
        cause: error,
      });
    }
  }

  /** Calls a handler; what yields, or is an effect, becomes a fiber that ends with the run. */
  #run(path: EffectId, what: string, call: () => unknown, ended: Done): void {
    let value: unknown;
    const made: Effect<unknown>[] = [];
    try {
      value = this.#owner.guarded(call, made);
    } catch (error) {
      ended(rejected(error));
      return;
    }
    if (value instanceof Effect) markRun(value);
    this.#owner.adopt(made);
    if (isPromise(value)) {
      ended(
        rejected(
          new AuthoringError(
            `The handler ${path} returned a promise. Write it as \`async function* () { … }\`, and put what waits into an activity.`,
            "FOREIGN_AWAIT",
          ),
        ),
      );
      return;
    }
    const flow = value instanceof Effect ? flowOf(value) : value;
    if (!isFlow(flow)) {
      ended(fulfilled(value));
      return;
    }
    this.#open += 1;
    const task = new TaskState(path);
    // Its failure is told by whoever waits for the outcome.
    task.join((outcome) => {
      this.#open -= 1;
      if (!outcome.ok && outcome.error === closing) this.#cutOff.push(what);
      ended(outcome);
    });
    task.operation = this.#owner.newFiber(path, flow, (outcome) => task.settle(outcome));
    this.#owner.own(task);
  }
}

async function* flowOf(effect: Effect<unknown>): AsyncGenerator<unknown, unknown, unknown> {
  return yield effect;
}

function checkDefinition(given: unknown, what: string, maker: string): void {
  if (typeof given === "object" && given !== null && "name" in given && typeof given.name === "string") return;
  throw new WovyrError(`${what} takes what \`${maker}\` returned as its first argument`, { code: "INVALID_DEFINITION" });
}

function checkHandler(handler: unknown, what: string): void {
  const kind = functionKind(handler);
  if (kind === "function" || kind === "async function*") return;
  throw new WovyrError(
    `${what} takes a function or an \`async function*\` that yields effects${kind === "async function" ? ", not an async function" : ""}`,
    {
      code: "INVALID_DEFINITION",
    },
  );
}

const twice = (what: string, call: string) =>
  new WovyrError(`${what} has a handler already: call ${call} once for each`, { code: "INVALID_DEFINITION" });

function noHandler(kind: string, name: string, known: Iterable<string>): ApiError {
  const names = [...known];
  return new ApiError(
    `This run handles no ${kind} "${name}". ${names.length === 0 ? `It handles no ${kind} at present.` : `It handles: ${names.join(", ")}.`}`,
    { code: "HANDLER_NOT_FOUND" },
  );
}

/** What an update's caller is told when its handler was cut off. */
function unfinished(name: string, error: unknown): unknown {
  if (!(error instanceof CancelledError)) return error;
  return new WovyrError(
    `The workflow finished before update "${name}" was done. Let it wait with \`yield* condition(() => ctx.handlersFinished)\` before it returns.`,
    { code: "UPDATE_UNFINISHED" },
  );
}
