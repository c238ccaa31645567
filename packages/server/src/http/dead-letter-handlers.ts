/** Work that was given up, and what people decide on it. */
import { type DeadLetterDecision, type DeadLetterFilter, type DecisionsBody, instant } from "@wovyr/sdk/internal";
import { replayedHeader } from "./answer.ts";
import type { Handlers } from "./handler.ts";

type Served =
  | "listDeadLetters"
  | "getDeadLetter"
  | "retryDeadLetter"
  | "resolveDeadLetter"
  | "failDeadLetter"
  | "discardDeadLetter"
  | "retryDeadLetters"
  | "resolveDeadLetters"
  | "failDeadLetters"
  | "discardDeadLetters";

export const deadLetterHandlers: Pick<Handlers, Served> = {
  async listDeadLetters({ operations, query }) {
    return { status: 200, value: await operations.listDeadLetters(query) };
  },

  async getDeadLetter({ operations, names }) {
    return { status: 200, value: await operations.getDeadLetter(names.letter) };
  },

  retryDeadLetter: decided("retry"),
  resolveDeadLetter: decided("resolve"),
  failDeadLetter: decided("fail"),
  discardDeadLetter: decided("discard"),

  retryDeadLetters: allDecided("retry"),
  resolveDeadLetters: allDecided("resolve"),
  failDeadLetters: allDecided("fail"),
  discardDeadLetters: allDecided("discard"),
};

function decided(decision: DeadLetterDecision): Handlers["retryDeadLetter"] & Handlers["resolveDeadLetter"] {
  return async ({ operations, names, body, idempotencyKey }) => {
    const options = { ...body, ...(idempotencyKey !== undefined && { idempotencyKey }) };
    const { replayed } = await operations.decideDeadLetter(names.letter, decision, options);
    return { status: 202, value: { id: names.letter }, ...(replayed && { headers: replayedHeader }) };
  };
}

function allDecided(decision: DeadLetterDecision): Handlers["retryDeadLetters"] & Handlers["resolveDeadLetters"] {
  return async ({ operations, body: { letters, id, ...said }, idempotencyKey, prefix }) => {
    const options = { ...(id !== undefined && { id }), ...(idempotencyKey !== undefined && { idempotencyKey }) };
    const batch = await operations.decideDeadLetters({ decision, letters: filterOf(letters), ...said }, options);
    return {
      status: 202,
      value: { id: batch.id },
      headers: { location: `${prefix}/v1/batches/${batch.id}`, ...(batch.replayed && replayedHeader) },
    };
  };
}

function filterOf({ since, until, ...rest }: DecisionsBody["letters"]): DeadLetterFilter {
  return {
    ...rest,
    ...(since !== undefined && { since: new Date(instant(since, "since")) }),
    ...(until !== undefined && { until: new Date(instant(until, "until")) }),
  };
}
