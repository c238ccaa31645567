/** What the engine does itself when a workflow asks for it. It is called as any activity is: at least once, with a key that stays the same. */
import type { ActivityContext, BuiltIn, PublishInput, SendInput } from "@wovyr/sdk/internal";
import type { Attempt } from "./attempt.ts";
import type { FindRuns, OperateOnRuns } from "./batch-workflow.ts";
import { findRuns, operateOnRuns } from "./batches.ts";
import type { Engine } from "./engine.ts";
import { localOperations } from "./operations.ts";
import { Tenancy } from "./tenancy.ts";

export function builtIn(engine: Engine): (attempt: Attempt, input: unknown, ctx: ActivityContext) => Promise<unknown> {
  return async ({ tenant, call }, input, { idempotencyKey }) => {
    const operations = localOperations(tenant, () => engine, new Map());
    switch (call.definition.builtIn as BuiltIn) {
      case "send": {
        const { to, event, payload } = input as SendInput;
        await operations.sendEvent(to, event, payload, { idempotencyKey });
        return undefined;
      }
      case "publish": {
        const { event, payload, ...options } = input as PublishInput;
        await operations.publish(event, payload, { idempotencyKey, ...options });
        return undefined;
      }
      case "findRuns":
        return findRuns(new Tenancy(tenant, () => engine), input as FindRuns);
      case "operateOnRuns":
        return operateOnRuns(operations, input as OperateOnRuns);
    }
  };
}
