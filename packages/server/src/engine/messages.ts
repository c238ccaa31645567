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

/** How a message gets to its run; `make` gives it its name. */
export type Delivery = (
  tenancy: Tenancy,
  id: string,
  options: { readonly runId?: string; readonly idempotencyKey?: string },
  make: (message: string, engine: Engine) => Incoming,
) => Promise<Delivered>;

export class Messages {
  readonly #tenancy: Tenancy;
  readonly #delivery: Delivery;

  constructor(tenancy: Tenancy, delivery: Delivery = deliver) {
    this.#tenancy = tenancy;
    this.#delivery = delivery;
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
    const engine = this.#tenancy.reading();
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

  #message(
    id: string,
    options: { readonly runId?: string; readonly idempotencyKey?: string },
    make: (message: string, engine: Engine) => Incoming,
  ): Promise<Delivered> {
    return this.#delivery(this.#tenancy, id, options, make);
  }
}

/** Resolves when the run's history holds the message. */
const deliver: Delivery = async (tenancy, id, options, make) => {
  const engine = tenancy.acting();
  const fact = make(options.idempotencyKey ?? newMessageName(engine), engine);
  const open = options.runId === undefined ? engine.table.open(tenancy.tenant, id) : undefined;
  // One that is not durable yet may be refused: then another run has the id.
  const run = (open?.create === undefined ? open?.identity.run : undefined) ?? (await tenancy.row(engine, id, options.runId)).run;
  return new Promise((resolve, reject) => {
    engine.deliver(
      { tenant: tenancy.tenant, run, shard: engine.shardOf(tenancy.tenant, id) },
      {
        fact,
        receipt: {
          accepted: (replayed) => resolve({ replayed }),
          refused: reject,
        },
      },
    );
  });
};

export const newMessageName = (engine: Engine): string => `m-${engine.ids.run()}`;

/** The fact that an event is for its run; `limit` is that of its bytes. */
export function eventFact(message: string, name: string, payload: unknown, limit: number): EventReceived {
  checkName(name, "the name of an event");
  return { type: "EventReceived", message, name, payload: encodePayload(payload, { limit, what: `payload of event "${name}"` }) };
}
