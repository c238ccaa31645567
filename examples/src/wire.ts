/** A transfer that must not be made twice: it runs once at most, and where nobody knows what came of it, the bank is asked. */
import { ActivityError, activity, OutcomeUnknownError, Type, workflow } from "@wovyr/sdk";

/** The bank refused the order before it did anything. */
export class Refused extends Error {}

export type Bank = {
  wire(reference: string, amount: number, signal: AbortSignal): Promise<string>;
  /** What became of an order: the number of its receipt, if it was executed. */
  find(reference: string): Promise<string | undefined>;
};

export function wiring(bank: Bank) {
  const wire = activity(
    "wire",
    {
      semantics: "atMostOnce",
      timeout: { startToClose: "30s" },
      retry: { rules: [{ when: Refused, retry: { maxAttempts: 3, initialDelay: "1m" } }] },
      // While the bank does not answer, nobody else's order is sent either.
      circuitBreaker: { failureThreshold: 3, openFor: "5m" },
    },
    (amount: number, ctx) => bank.wire(ctx.idempotencyKey, amount, ctx.signal),
  );
  const find = activity("find", { retry: { maxAttempts: 10 } }, (reference: string) => bank.find(reference));

  return workflow("wire", { input: Type.Number(), timeout: "1 day" }, async function* (amount, ctx) {
    try {
      return yield* wire(amount).with({ id: "wire" });
    } catch (error) {
      if (!(error instanceof ActivityError && error.cause instanceof OutcomeUnknownError)) throw error;
      const receipt = yield* find(`${ctx.runId}/@wire`);
      return receipt ?? "not executed";
    }
  });
}
