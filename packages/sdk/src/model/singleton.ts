/**
 * One run of a workflow at a time, or one for each key.
 *
 * 1. Its instance id says which: the id follows from the workflow and the key, and no two open instances have one id.
 */
import { checkKeyFunction } from "./concurrency.ts";
import { digest } from "./digest.ts";
import { checkOptions, oneOf } from "./option.ts";

/** What a start does while another run is open: it returns that one, or has it cancelled and takes its place. */
export type OnSingletonConflict = "skip" | "cancel";

export type SingletonOptions<Input = unknown> = {
  /** One at a time for each key. Default: one of the workflow. */
  readonly key?: ((input: Input) => string) | undefined;
  /** Default `"skip"`. */
  readonly onConflict?: OnSingletonConflict | undefined;
};

/** As a definition keeps it. */
export type Singleton = { readonly key?: (input: never) => string; readonly onConflict: OnSingletonConflict };

/** Throws INVALID_OPTION. */
export function resolveSingleton(options: SingletonOptions<never>, what: string): Singleton {
  checkOptions(options, ["key", "onConflict"], what);
  const { key, onConflict = "skip" } = options;
  return Object.freeze({
    ...(key !== undefined && { key: checkKeyFunction(key, `${what}.key`) }),
    onConflict: oneOf(onConflict, ["skip", "cancel"], `${what}.onConflict`),
  });
}

const plain = /^[A-Za-z0-9_.:@-]*$/;
const longestPlain = 200;

/** What only the ids of singletons begin with. */
export const singletonPrefix = "singleton~";

/** The id of a singleton's instance. What cannot stand in an id is told by its digest. */
export function singletonId(workflow: string, key = ""): string {
  if (plain.test(workflow) && plain.test(key) && workflow.length + key.length <= longestPlain)
    return `${singletonPrefix}${workflow}~${key}`;
  return `${singletonPrefix}${digest([workflow, key])}`;
}
