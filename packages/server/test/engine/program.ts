/** Small workflows made at random: what they yield is a tree, and what happens in them is logged in their variables. */
import {
  activity,
  all,
  any,
  awaitEvent,
  event,
  type Flow,
  NonRetryableError,
  race,
  settled,
  sleep,
  spawn,
  Type,
  timeout,
  workflow,
} from "@wovyr/sdk";
import fc from "fast-check";

export type Program =
  | { readonly kind: "sleep"; readonly ms: number }
  | { readonly kind: "activity" }
  | { readonly kind: "event"; readonly ms: number }
  | { readonly kind: "throw" }
  | { readonly kind: "sequence" | "all" | "race" | "any" | "settled"; readonly parts: readonly Program[] }
  | { readonly kind: "timeout"; readonly part: Program; readonly ms: number }
  | { readonly kind: "spawn"; readonly part: Program; readonly joined: boolean }
  | { readonly kind: "finally" | "catch"; readonly part: Program; readonly after: Program };

const ms = fc.constantFrom(1, 10, 10, 25, 1_000, 61_000);

const node: fc.Arbitrary<Program> = fc.letrec<{ node: Program; leaf: Program; branch: Program }>((tie) => ({
  leaf: fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("activity" as const) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("sleep" as const), ms }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("event" as const), ms }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("throw" as const) }) },
  ),
  branch: fc.oneof(
    fc.record({
      kind: fc.constantFrom("sequence" as const, "sequence" as const, "all" as const, "race" as const, "any" as const, "settled" as const),
      parts: fc.array(tie("node"), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("timeout" as const), part: tie("node"), ms }),
    fc.record({ kind: fc.constant("spawn" as const), part: tie("node"), joined: fc.boolean() }),
    fc.record({ kind: fc.constantFrom("finally" as const, "catch" as const), part: tie("node"), after: tie("node") }),
  ),
  node: fc.oneof({ maxDepth: 4, depthSize: "medium" }, { weight: 1, arbitrary: tie("leaf") }, { weight: 2, arbitrary: tie("branch") }),
})).node;

export const program: fc.Arbitrary<Program> = fc.record({
  kind: fc.constantFrom("sequence" as const, "sequence" as const, "all" as const, "settled" as const),
  parts: fc.array(node, { minLength: 2, maxLength: 4 }),
});

export const signal = event("signal", Type.String());
const work = activity("work", (name: string, ctx) => blocked(name, ctx.idempotencyKey));
/** Attempts that are blocked, by idempotency key. */
const waiting = new Map<
  string,
  { readonly name: string; readonly resolve: (value: string) => void; readonly reject: (error: Error) => void }[]
>();

function blocked(name: string, key: string): Promise<string> {
  return new Promise((resolve, reject) => waiting.set(key, [...(waiting.get(key) ?? []), { name, resolve, reject }]));
}

/** Ends every attempt that is blocked under the key. */
export function endActivity(key: string, fails: boolean): void {
  const calls = waiting.get(key) ?? [];
  waiting.delete(key);
  for (const { name, resolve, reject } of calls) {
    if (fails) reject(new NonRetryableError(`${name} failed`));
    else resolve(`${name} done`);
  }
}

export const forgetActivities = (): void => waiting.clear();

export const interpreted = workflow("interpreted", { variables: () => ({ log: [] as string[] }) }, async function* (tree: Program, ctx) {
  const { log } = ctx.variables;
  return yield* run(tree, "0", log);
});

async function* run(tree: Program, name: string, log: string[]): Flow<unknown> {
  try {
    const value = yield* one(tree, name, log);
    log.push(`${name} ok`);
    return value;
  } catch (error) {
    log.push(`${name} ${(error as Error).name}`);
    throw error;
  }
}

async function* one(tree: Program, name: string, log: string[]): Flow<unknown> {
  switch (tree.kind) {
    case "sleep":
      yield* sleep(tree.ms);
      return name;
    case "activity":
      return yield* work(name);
    case "event":
      return yield* awaitEvent(signal, { timeout: tree.ms });
    case "throw":
      throw new RangeError(name);
    case "sequence": {
      const values: unknown[] = [];
      for (const [index, part] of tree.parts.entries()) values.push(yield* run(part, `${name}.${index}`, log));
      return values;
    }
    case "all":
      return yield* all(branches(tree.parts, name, log));
    case "race":
      return yield* race(branches(tree.parts, name, log));
    case "any":
      return yield* any(branches(tree.parts, name, log));
    case "settled":
      return (yield* settled(branches(tree.parts, name, log))).map((entry) =>
        entry.status === "fulfilled" ? entry.value : entry.reason.name,
      );
    case "timeout":
      return yield* timeout(run(tree.part, `${name}.t`, log), tree.ms);
    case "spawn": {
      const task = yield* spawn(run(tree.part, `${name}.s`, log));
      return tree.joined ? yield* task : name;
    }
    case "finally":
      try {
        return yield* run(tree.part, `${name}.f`, log);
      } finally {
        yield* run(tree.after, `${name}.g`, log);
      }
    case "catch":
      try {
        return yield* run(tree.part, `${name}.c`, log);
      } catch (error) {
        return [(error as Error).name, yield* run(tree.after, `${name}.h`, log)];
      }
  }
}

const branches = (parts: readonly Program[], name: string, log: string[]) => parts.map((part, index) => run(part, `${name}.${index}`, log));
