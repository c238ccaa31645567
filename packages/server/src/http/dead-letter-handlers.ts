import type { DeadLetterDecision } from "@wovyr/sdk/internal";
import { replayedHeader } from "./answer.ts";
import type { Handlers } from "./handler.ts";

type Served = "listDeadLetters" | "getDeadLetter" | "retryDeadLetter" | "resolveDeadLetter" | "failDeadLetter" | "discardDeadLetter";

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
};

function decided(decision: DeadLetterDecision): Handlers["retryDeadLetter"] & Handlers["resolveDeadLetter"] {
  return async ({ operations, names, body, idempotencyKey }) => {
    const options = { ...body, ...(idempotencyKey !== undefined && { idempotencyKey }) };
    const { replayed } = await operations.decideDeadLetter(names.letter, decision, options);
    return { status: 202, value: { id: names.letter }, ...(replayed && { headers: replayedHeader }) };
  };
}
