/** The `ctx` that a workflow function sees. */
import type { WorkflowContext } from "../define/workflow-context.ts";
import type { Payload } from "../model/history.ts";
import { encodePayload } from "../model/payload.ts";
import type { LogLevel } from "./execution.ts";

export type ContextSource = {
  readonly id: string;
  readonly runId: string;
  readonly tenant: string;
  readonly correlationId: string;
  readonly variables: object;
  readonly attributes: object;
  readonly memo: Readonly<Record<string, unknown>>;
  readonly now: () => number;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly historyLength: () => number;
  readonly log: (level: LogLevel, message: string, data?: object) => void;
};

/** A mutable object of the workflow whose changes are persisted with the turn that made them. Costs nothing until it is touched. */
export class Tracked {
  readonly #value: object;
  readonly #what: string;
  #touched = false;
  #text: Payload | undefined;
  #recorded: Payload | undefined;

  constructor(value: object, what: string) {
    this.#value = value;
    this.#what = what;
  }

  get value(): object {
    if (!this.#touched) {
      this.#touched = true;
      this.#recorded = encodePayload(this.#value, { what: this.#what });
    }
    return this.#value;
  }

  /** Encodes the present value; throws `PayloadError` when it cannot be stored. */
  check(limit: number): void {
    if (this.#touched) this.#text = encodePayload(this.#value, { limit, what: this.#what });
  }

  /** The value when it differs from what history holds. */
  takeChange(): Payload | undefined {
    if (this.#text === undefined || this.#text === this.#recorded) return undefined;
    this.#recorded = this.#text;
    return this.#text;
  }
}

export function createContext(source: ContextSource): {
  context: WorkflowContext;
  variables: Tracked;
  attributes: Tracked;
} {
  const variables = new Tracked(source.variables, "ctx.variables");
  const attributes = new Tracked(source.attributes, "ctx.attributes");
  const context = {
    id: source.id,
    runId: source.runId,
    tenant: source.tenant,
    correlationId: source.correlationId,
    memo: source.memo,
    now: () => new Date(source.now()),
    random: source.random,
    uuid: source.uuid,
    log: {
      debug: (message: string, data?: object) => source.log("debug", message, data),
      info: (message: string, data?: object) => source.log("info", message, data),
      warn: (message: string, data?: object) => source.log("warn", message, data),
      error: (message: string, data?: object) => source.log("error", message, data),
    },
    get variables() {
      return variables.value;
    },
    get attributes() {
      return attributes.value;
    },
    get historyLength() {
      return source.historyLength();
    },
  };
  return { context: context as WorkflowContext, variables, attributes };
}
