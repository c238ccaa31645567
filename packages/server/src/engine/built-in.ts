/** What the engine does itself when a workflow asks for it. It is called as any activity is: at least once, with a key that stays the same. */
import { WovyrError } from "@wovyr/sdk";
import { type ActivityContext, type BuiltIn, failureOf, type PublishInput, type SendInput } from "@wovyr/sdk/internal";
import type { Attempt } from "./attempt.ts";
import type { FindDeadLetters, FindRuns, OperateOnRuns } from "./batch-workflow.ts";
import { findDeadLetters, findRuns, operateOnRuns } from "./batches.ts";
import type { Engine } from "./engine.ts";
import { routedOperations } from "./routed-operations.ts";
import { Tenancy } from "./tenancy.ts";

export function builtIn(engine: Engine): (attempt: Attempt, input: unknown, ctx: ActivityContext) => Promise<unknown> {
  return async (attempt, input, { idempotencyKey }) => {
    const { tenant, call } = attempt;
    const operations = routedOperations(tenant, () => engine, new Map());
    switch (call.definition.builtIn as BuiltIn) {
      case "send": {
        const { to, event, payload } = input as SendInput;
        await operations.sendEvent(to, event, payload, { idempotencyKey }).catch((error) => undelivered(engine, attempt, event, error));
        return undefined;
      }
      case "publish": {
        const { event, payload, ...options } = input as PublishInput;
        await operations.publish(event, payload, { idempotencyKey, ...options });
        return undefined;
      }
      case "findRuns":
        return findRuns(new Tenancy(tenant, () => engine), input as FindRuns);
      case "findDeadLetters":
        return findDeadLetters(operations, input as FindDeadLetters);
      case "operateOnRuns":
        return operateOnRuns(operations, input as OperateOnRuns);
    }
  };
}

/** Why an event reaches no run. */
const reachesNobody: ReadonlySet<unknown> = new Set(["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"]);

/** Keeps an event that reached no run, with the reason, unless the workflow wants to hear of it. */
async function undelivered(
  engine: Engine,
  { tenant, run, shard, instanceId, workflow, effect, call }: Attempt,
  event: string,
  error: unknown,
): Promise<void> {
  if (!(error instanceof WovyrError) || !reachesNobody.has(error.code) || call.options.onExhausted !== undefined) throw error;
  await engine.options.store.addDeadLetter({
    tenant,
    run,
    shard,
    effect,
    at: engine.options.clock.now(),
    kind: "event",
    workflow,
    id: instanceId,
    name: event,
    attempts: 1,
    failure: await engine.rows.encodeFailure(failureOf(error)),
  });
}
