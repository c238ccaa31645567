/** What is said to runs: events, updates, queries, requests to wake and to end. Whoever says it is answered when it is durable. */
import {
  type ActivityDecision,
  type CancelMode,
  type CompensationDecision,
  checkName,
  type Delivered,
  encodePayload,
  type Incoming,
  type UpdateResponse,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { Tenancy } from "./tenancy.ts";

type EventReceived = Extract<Incoming, { type: "EventReceived" }>;

const defaultUpdateWait = 30_000;

export class Messages {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  sendEvent(
    id: string,
    event: string,
    payload: unknown,
    options: { readonly runId?: string; readonly idempotencyKey?: string } = {},
  ): Promise<Delivered> {
    return this.#message(id, options, (message, engine) => eventFact(message, event, payload, engine.options.limits.execution.payload));
  }

  async query(id: string, query: string, input: unknown, options: { readonly runId?: string } = {}): Promise<unknown> {
    const engine = this.#tenancy.acting();
    return engine.dialogue.query(await this.#tenancy.row(engine, id, options.runId), query, input);
  }

  async update(
    id: string,
    update: string,
    input: unknown,
    options: { readonly runId?: string; readonly idempotencyKey?: string; readonly wait?: number; readonly signal?: AbortSignal } = {},
  ): Promise<UpdateResponse> {
    const engine = this.#tenancy.acting();
    const { run } = await this.#tenancy.row(engine, id, options.runId);
    const { idempotencyKey, wait = defaultUpdateWait, signal } = options;
    return engine.dialogue.update({ tenant: this.#tenancy.tenant, run, id }, { name: update, input, idempotencyKey, wait, signal });
  }

  wake(id: string, options: { readonly runId?: string; readonly idempotencyKey?: string } = {}): Promise<Delivered> {
    return this.#message(id, options, (message) => ({ type: "WakeRequested", message }));
  }

  cancel(
    id: string,
    options: {
      readonly runId?: string;
      readonly mode?: CancelMode;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    } = {},
  ): Promise<Delivered> {
    const { mode = "graceful", reason } = options;
    return this.#message(id, options, (message) => ({
      type: "CancelRequested",
      message,
      mode,
      ...(reason !== undefined && { reason }),
    }));
  }

  /** `decided` says of which attempt it is, and what it came to where that is the decision. */
  decideActivity(
    id: string,
    decided: Pick<Extract<Incoming, { type: "ActivityDecided" }>, "effect" | "attempt" | "output" | "said">,
    decision: ActivityDecision,
    options: { readonly runId: string; readonly note?: string; readonly idempotencyKey?: string },
  ): Promise<Delivered> {
    const { note } = options;
    return this.#message(id, options, (message) => ({
      type: "ActivityDecided",
      message,
      ...decided,
      decision,
      ...(note !== undefined && { note }),
    }));
  }

  decideCompensation(
    id: string,
    effect: string,
    decision: CompensationDecision,
    options: { readonly runId?: string; readonly note?: string; readonly idempotencyKey?: string } = {},
  ): Promise<Delivered> {
    const { note } = options;
    return this.#message(id, options, (message) => ({
      type: "CompensationDecided",
      message,
      effect: checkName(effect, "the id of a compensation"),
      decision,
      ...(note !== undefined && { note }),
    }));
  }

  terminate(
    id: string,
    options: {
      readonly runId?: string;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    } = {},
  ): Promise<Delivered> {
    const { reason } = options;
    return this.#message(id, options, (message) => ({
      type: "TerminateRequested",
      message,
      ...(reason !== undefined && { reason }),
    }));
  }

  pause(
    id: string,
    options: { readonly runId?: string; readonly reason?: string; readonly idempotencyKey?: string } = {},
  ): Promise<Delivered> {
    const { reason } = options;
    return this.#message(id, options, (message) => ({ type: "PauseRequested", message, ...(reason !== undefined && { reason }) }));
  }

  resume(id: string, options: { readonly runId?: string; readonly idempotencyKey?: string } = {}): Promise<Delivered> {
    return this.#message(id, options, (message) => ({ type: "ResumeRequested", message }));
  }

  /** Resolves when the run's history holds the message. */
  async #message(
    id: string,
    options: { readonly runId?: string; readonly idempotencyKey?: string },
    make: (message: string, engine: Engine) => Incoming,
  ): Promise<Delivered> {
    const engine = this.#tenancy.acting();
    const fact = make(options.idempotencyKey ?? `m-${engine.newRunId()}`, engine);
    const open = options.runId === undefined ? engine.table.open(this.#tenancy.tenant, id) : undefined;
    // One that is not durable yet may be refused: then another run has the id.
    const run = (open?.create === undefined ? open?.identity.run : undefined) ?? (await this.#tenancy.row(engine, id, options.runId)).run;
    return new Promise((resolve, reject) => {
      engine.deliver(
        { tenant: this.#tenancy.tenant, run },
        {
          fact,
          receipt: {
            accepted: (replayed) => resolve({ replayed }),
            refused: reject,
          },
        },
      );
    });
  }
}

/** The fact that an event is for its run; `limit` is that of its bytes. */
export function eventFact(message: string, name: string, payload: unknown, limit: number): EventReceived {
  checkName(name, "the name of an event");
  return { type: "EventReceived", message, name, payload: encodePayload(payload, { limit, what: `payload of event "${name}"` }) };
}
