/** The `ctx` that a workflow function sees. */
import type { EventDef } from "../define/event.ts";
import type { Log } from "../define/log.ts";
import type { Query } from "../define/query.ts";
import type { Update } from "../define/update.ts";
import type { Workflow } from "../define/workflow.ts";
import type { Attributes, WorkflowContext } from "../define/workflow-context.ts";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import { ContinueAsNewEffect, type ContinueAsNewOptions } from "../effects/continue-as-new.ts";
import { captureSite } from "../effects/effect.ts";
import { checkAttributes } from "../model/attributes.ts";
import { AuthoringError } from "../model/errors.ts";
import type { Incoming } from "../model/history.ts";
import { checkName } from "../model/name.ts";
import { checkOptions } from "../model/option.ts";
import { decodePayload } from "../model/payload.ts";
import type { EventHandler, Handlers, QueryHandler, UpdateHandler } from "./handlers.ts";
import type { Logger } from "./log-line.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Tracked } from "./tracked.ts";

/** Who a run is to its code. A run that goes on from another one's history changes it once. */
export type RunIdentity = { readonly id: string; readonly run: string; readonly correlationId: string; readonly seed: string };

/** What a context needs of the execution that it belongs to. */
export interface ContextOwner extends Logger {
  readonly definition: WorkflowDefinition;
  readonly identity: RunIdentity;
  readonly tenant: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly historyLength: number;
  readonly historyIsLong: boolean;
  /** Bytes of one value. */
  readonly payloadLimit: number;
  readonly handlers: Handlers;
}

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

export class Context implements WorkflowContext<object> {
  readonly tenant: string;
  readonly attempt: number;
  readonly trackedVariables: Tracked;
  readonly trackedAttributes: Tracked;
  readonly #owner: ContextOwner;
  readonly #start: StartFact;
  #random: SeededRandom | undefined;
  #seed: string | undefined;
  #log: Log | undefined;
  #memo: Readonly<Record<string, unknown>> | undefined;

  constructor(owner: ContextOwner, start: StartFact, variables: object) {
    this.#owner = owner;
    this.#start = start;
    this.tenant = owner.tenant;
    this.attempt = start.retry?.attempt ?? 1;
    this.trackedVariables = new Tracked(variables, "ctx.variables", owner.payloadLimit);
    this.trackedAttributes = new Tracked(
      start.attributes === undefined ? {} : (decodePayload(start.attributes) as object),
      "ctx.attributes",
      owner.payloadLimit,
      (value) => checkAttributes(value as Readonly<Record<string, unknown>>),
    );
  }

  /** What the code is doing while it may change nothing; undefined when it may. */
  #reading: string | undefined;

  /** Calls what only reads: draws and registrations throw in it. */
  reading<T>(what: string, read: () => T): T {
    this.#reading = what;
    try {
      return read();
    } finally {
      this.#reading = undefined;
    }
  }

  #mayChange(call: string): void {
    if (this.#reading === undefined) return;
    throw new AuthoringError(
      `ctx.${call} was called in ${this.#reading}, which only reads: it would change what the run does afterwards.`,
      "INVALID_OPTION",
    );
  }

  // Arrow functions, so that `const { now, random } = ctx` works.
  readonly now = (): Date => new Date(this.#owner.now);
  readonly random = (): number => this.#numbers.fraction();
  readonly uuid = (): string => this.#numbers.uuid();

  get #numbers(): SeededRandom {
    this.#mayChange("random() or ctx.uuid()");
    const { seed } = this.#owner.identity;
    if (this.#random === undefined || this.#seed !== seed) {
      this.#random = new SeededRandom(seed);
      this.#seed = seed;
    }
    return this.#random;
  }

  get id(): string {
    return this.#owner.identity.id;
  }

  get runId(): string {
    return this.#owner.identity.run;
  }

  get correlationId(): string {
    return this.#owner.identity.correlationId;
  }

  // Made when they are asked for: most runs never do.
  get on() {
    this.#mayChange("on()");
    return (event: EventDef<unknown, never>, handler: EventHandler): void => this.#owner.handlers.on(event, handler);
  }

  get onQuery() {
    this.#mayChange("onQuery()");
    return (query: Query<never, unknown>, handler: QueryHandler): void => this.#owner.handlers.onQuery(query, handler);
  }

  get onUpdate() {
    this.#mayChange("onUpdate()");
    return (update: Update<never, unknown>, handler: UpdateHandler): void => this.#owner.handlers.onUpdate(update, handler);
  }

  get continueAsNew() {
    const make = (input: unknown, options: ContinueAsNewOptions = {}): ContinueAsNewEffect => {
      checkOptions(options, ["version"], "continueAsNew");
      if (options.version !== undefined) checkName(options.version, "the version that continueAsNew names");
      return new ContinueAsNewEffect(input, options.version, captureSite(make));
    };
    return make;
  }

  get self(): Workflow<never, unknown> {
    const { definition } = this.#owner;
    return { name: definition.name, version: definition.version, definition } as unknown as Workflow<never, unknown>;
  }

  get shouldContinueAsNew(): boolean {
    return this.#owner.historyIsLong;
  }

  get handlersFinished(): boolean {
    return this.#owner.handlers.finished;
  }

  get log(): Log {
    const owner = this.#owner;
    this.#log ??= {
      debug: (message, data) => owner.log("debug", message, data),
      info: (message, data) => owner.log("info", message, data),
      warn: (message, data) => owner.log("warn", message, data),
      error: (message, data) => owner.log("error", message, data),
    };
    return this.#log;
  }

  get variables(): object {
    return this.trackedVariables.value;
  }

  get attributes(): Attributes {
    return this.trackedAttributes.value as Attributes;
  }

  get memo(): Readonly<Record<string, unknown>> {
    this.#memo ??= this.#start.memo === undefined ? {} : (decodePayload(this.#start.memo) as Record<string, unknown>);
    return this.#memo;
  }

  get historyLength(): number {
    return this.#owner.historyLength;
  }
}
