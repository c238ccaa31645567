/** How one attempt of an activity is run. The default calls the function in this process. */
import type { ActivityContext, ActivityDefinition } from "@wovyr/sdk/internal";

export interface ActivityExecutor {
  /** Resolves with the activity's raw result or rejects with what it threw. */
  execute(definition: ActivityDefinition, input: unknown, ctx: ActivityContext): Promise<unknown> | unknown;
}

export const inProcess: ActivityExecutor = {
  execute: (definition, input, ctx) => {
    if (definition.run === undefined)
      throw new Error(`activity "${definition.name}" is a contract without an implementation in this process`);
    return definition.run(input, ctx);
  },
};
