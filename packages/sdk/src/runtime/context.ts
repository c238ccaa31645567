/** The `ctx` that a workflow function sees. */
import type { Log } from "../define/log.ts";
import type { Attributes, WorkflowContext } from "../define/workflow-context.ts";
import { checkAttributes } from "../model/attributes.ts";
import type { Incoming } from "../model/history.ts";
import { decodePayload } from "../model/payload.ts";
import type { Logger } from "./log-line.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Tracked } from "./tracked.ts";

/** What a context needs of the execution that it belongs to. */
export interface ContextOwner extends Logger {
  readonly run: string;
  readonly tenant: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly historyLength: number;
}

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

export class Context implements WorkflowContext<object> {
  readonly id: string;
  readonly runId: string;
  readonly tenant: string;
  readonly correlationId: string;
  readonly trackedVariables: Tracked;
  readonly trackedAttributes: Tracked;
  readonly #owner: ContextOwner;
  readonly #start: StartFact;
  #random: SeededRandom | undefined;
  #log: Log | undefined;
  #memo: Readonly<Record<string, unknown>> | undefined;

  constructor(owner: ContextOwner, start: StartFact, variables: object) {
    this.#owner = owner;
    this.#start = start;
    this.id = start.id;
    this.runId = owner.run;
    this.tenant = owner.tenant;
    this.correlationId = start.correlationId ?? start.id;
    this.trackedVariables = new Tracked(variables, "ctx.variables");
    this.trackedAttributes = new Tracked(
      start.attributes === undefined ? {} : (decodePayload(start.attributes) as object),
      "ctx.attributes",
      (value) => checkAttributes(value as Readonly<Record<string, unknown>>),
    );
  }

  // Arrow functions, so that `const { now, random } = ctx` works.
  readonly now = (): Date => new Date(this.#owner.now);
  readonly random = (): number => this.#numbers.fraction();
  readonly uuid = (): string => this.#numbers.uuid();

  get #numbers(): SeededRandom {
    this.#random ??= new SeededRandom(this.#start.seed);
    return this.#random;
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
