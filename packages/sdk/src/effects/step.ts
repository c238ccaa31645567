import type { ActivityContext } from "../define/activity-context.ts";
import { functionKind } from "../define/function-kind.ts";
import { WovyrError } from "../model/errors.ts";
import { checkName } from "../model/name.ts";
import { ActivityEffect } from "./activity.ts";
import { type CallOptions, checkCallOptions, noOptions } from "./call-options.ts";
import { captureSite } from "./effect.ts";

/** An activity without a definition: the function runs in this process, with the same retries and timeouts. */
export function step<R>(name: string, fn: (ctx: ActivityContext) => R, options?: CallOptions): ActivityEffect<Awaited<R>> {
  checkName(name, "the name of a step");
  const kind = functionKind(fn);
  if (kind !== "function" && kind !== "async function") {
    throw new WovyrError(`step ${name} needs a function: \`step("${name}", async (ctx) => …)\``, { code: "INVALID_DEFINITION" });
  }
  if (options !== undefined) checkCallOptions(options, `step ${name}`);
  const definition = {
    name,
    run: (_input: unknown, ctx: ActivityContext) => fn(ctx),
  };
  return new ActivityEffect(definition, undefined, options === undefined ? noOptions : Object.freeze({ ...options }), captureSite(step));
}
