/**
 * Small workflows made at random: trees of what they yield, printed, and run as real workflows.
 *
 * 1. Every part logs how it ended, with its value or error, in `ctx.variables`: the log tells in which order the branches went on.
 * 2. A part is named by its place in the tree, and runs at most once in a run.
 * 3. A program ends whatever comes, as long as what it waits for is given to it; it may wait for its own tasks in a circle, or for what never comes,
 *    and is ended from outside then.
 * 4. A part sees the tasks that the generators around it have spawned, but for those that it runs in itself.
 */
import {
  all,
  any,
  awaitEvent,
  child,
  compensateNow,
  condition,
  type Effect,
  event,
  type Flow,
  map,
  race,
  saga,
  select,
  settled,
  shield,
  sideEffect,
  sleep,
  spawn,
  type Task,
  Type,
  timeout,
  type Workflow,
  workflow,
} from "@wovyr/sdk";
import fc from "fast-check";
import { work } from "./activities.ts";

export type EventName = "red" | "blue";
export type Policy = "terminate" | "cancel" | "abandon";
export type Program =
  | { readonly kind: "sleep"; readonly ms: number }
  | { readonly kind: "activity"; readonly attempts: number; readonly undo?: Program | undefined }
  | { readonly kind: "event"; readonly event: EventName; readonly even: boolean; readonly ms: number | undefined }
  | { readonly kind: "sideEffect"; readonly fails: boolean }
  | { readonly kind: "throw" | "note" }
  | { readonly kind: "join" | "cancel"; readonly task: number }
  | { readonly kind: "select" }
  | { readonly kind: "sequence"; readonly parts: readonly Program[] }
  /** `bare`: parts that are single effects are given as such, and not as generators. */
  | { readonly kind: "all" | "race" | "any" | "settled"; readonly bare: boolean; readonly parts: readonly Program[] }
  | { readonly kind: "map"; readonly bare: boolean; readonly concurrency: number; readonly parts: readonly Program[] }
  | { readonly kind: "condition"; readonly lines: number; readonly ms: number | undefined }
  | { readonly kind: "undo" }
  | {
      readonly kind: "saga";
      readonly bare: boolean;
      readonly on: "always" | "manual" | undefined;
      readonly order: "parallel" | undefined;
      readonly part: Program;
    }
  | { readonly kind: "shield"; readonly bare: boolean; readonly part: Program }
  | { readonly kind: "timeout"; readonly bare: boolean; readonly ms: number; readonly part: Program }
  | { readonly kind: "spawn"; readonly bare: boolean; readonly part: Program }
  | { readonly kind: "finally" | "catch"; readonly part: Program; readonly after: Program }
  | { readonly kind: "child"; readonly policy: Policy; readonly part: Program };

export type Input = { readonly part: Program; readonly name: string };
export type Variables = { readonly log: string[]; count: number };
export type Output = { readonly value: unknown; readonly log: readonly string[] };

// ── made at random ───────────────────────────────────────────────────────────────────────────────────────

/** Also longer than a minute: the window of timers in memory, and the time that clean-up may take. */
const ms = fc.constantFrom(0, 1, 10, 10, 25, 1_000, 61_000);
const kind = <const K extends string>(...kinds: K[]) => fc.constantFrom(...kinds);
const maybe = <const K extends string>(...kinds: K[]) => fc.option(fc.constantFrom(...kinds), { nil: undefined });
const weighted = (weight: number, arbitrary: fc.Arbitrary<Program>) => ({ weight, arbitrary });
const oneOf = (...choices: ReturnType<typeof weighted>[]): fc.Arbitrary<Program> => fc.oneof(...choices);

type Parts = { leaf: Program; branch: Program; node: Program };
const { node } = fc.letrec<Parts>((tie) => {
  const bare = fc.boolean();
  const parts = (minLength: number) => fc.array(tie("node"), { minLength, maxLength: 3 });
  const part = tie("node");
  return {
    leaf: oneOf(
      weighted(6, fc.record({ kind: kind("activity"), attempts: fc.constantFrom(1, 1, 3) })),
      weighted(4, fc.record({ kind: kind("sleep"), ms })),
      weighted(
        4,
        fc.record({ kind: kind("event"), event: kind("red", "blue"), even: fc.boolean(), ms: fc.option(ms, { nil: undefined }) }),
      ),
      weighted(1, fc.record({ kind: kind("undo") })),
      weighted(1, fc.record({ kind: kind("sideEffect"), fails: fc.boolean() })),
      weighted(2, fc.record({ kind: kind("throw", "note") })),
      weighted(3, fc.record({ kind: kind("join", "cancel"), task: fc.nat(3) })),
      weighted(1, fc.record({ kind: kind("select") })),
      weighted(2, fc.record({ kind: kind("condition"), lines: fc.nat(8), ms: fc.option(ms, { nil: undefined }) })),
    ),
    branch: oneOf(
      weighted(3, fc.record({ kind: kind("sequence"), parts: parts(1) })),
      weighted(4, fc.record({ kind: kind("all", "settled", "any"), bare, parts: parts(0) })),
      weighted(3, fc.record({ kind: kind("race"), bare, parts: parts(1) })),
      weighted(1, fc.record({ kind: kind("map"), bare, concurrency: fc.integer({ min: 1, max: 2 }), parts: parts(0) })),
      weighted(4, fc.record({ kind: kind("activity"), attempts: fc.constantFrom(1, 1, 3), undo: part })),
      weighted(3, fc.record({ kind: kind("saga"), bare, on: maybe("always", "manual"), order: maybe("parallel"), part })),
      weighted(2, fc.record({ kind: kind("timeout"), bare, ms, part })),
      weighted(2, fc.record({ kind: kind("shield"), bare, part })),
      weighted(3, fc.record({ kind: kind("spawn"), bare, part })),
      weighted(3, fc.record({ kind: kind("finally", "catch"), part, after: part })),
      weighted(2, fc.record({ kind: kind("child"), policy: kind("terminate", "cancel", "abandon"), part })),
    ),
    node: fc.oneof({ maxDepth: 4, depthSize: "medium" }, weighted(1, tie("leaf")), weighted(2, tie("branch"))),
  };
});

export const program: fc.Arbitrary<Program> = oneOf(
  weighted(3, fc.record({ kind: kind("sequence"), parts: fc.array(node, { minLength: 2, maxLength: 5 }) })),
  weighted(1, fc.record({ kind: kind("all", "settled"), bare: fc.boolean(), parts: fc.array(node, { minLength: 2, maxLength: 4 }) })),
);

// ── printed ──────────────────────────────────────────────────────────────────────────────────────────────

/** A program on one line, `*` for bare branches. */
export function programText(program: Program): string {
  const { kind: name, part, after, undo, parts, bare, ...rest } = program as { kind: string; bare?: boolean } & Record<string, unknown>;
  const inner = [part, after, undo, ...((parts as Program[] | undefined) ?? [])].filter((each) => each !== undefined) as Program[];
  const options = Object.values(rest).filter((value) => value !== undefined);
  return `${name}${bare === true ? "*" : ""}${options.length > 0 ? `[${options.join(" ")}]` : ""}${inner.length + (parts === undefined ? 0 : 1) > 0 ? `(${inner.map(programText).join(", ")})` : ""}`;
}

/** A value without errors in it: they are told by name and message. */
export function shown(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(shown);
  const { name, message } = value as { name?: unknown; message?: unknown };
  if (typeof name === "string" && typeof message === "string") return `${name}: ${message}`;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shown(each)]));
}

export const logLine = (name: string, value: unknown): string => `${name} ${JSON.stringify(shown(value)) ?? "undefined"}`;

// ── run ──────────────────────────────────────────────────────────────────────────────────────────────────

export const events = { red: event("red", Type.Number()), blue: event("blue", Type.Number()) };
export const retryDelay = 40;
export const policy = { on: "failure", onFailure: "fail" } as const;

export const interpreted: Workflow<Input, Output> = workflow(
  "interpreted",
  { variables: (): Variables => ({ log: [], count: 0 }), compensation: policy },
  async function* ({ part, name }: Input, ctx): Flow<Output> {
    const value = yield* run(part, name, { variables: ctx.variables, started: ctx.now(), now: ctx.now }, []);
    return { value: shown(value), log: ctx.variables.log };
  },
);

type World = { readonly variables: Variables; readonly started: Date; readonly now: () => Date };
/** Those of the whole run, in the order in which they were spawned. */
type Tasks = Task<unknown>[];

async function* run(part: Program, name: string, world: World, tasks: Tasks): Flow<unknown> {
  try {
    const value = yield* body(part, name, world, tasks);
    world.variables.log.push(logLine(name, value));
    return value;
  } catch (error) {
    world.variables.log.push(logLine(name, error));
    throw error;
  }
}

async function* body(part: Program, name: string, world: World, tasks: Tasks): Flow<unknown> {
  const single = effect(part, name, world, tasks);
  if (single !== undefined) return yield* single;
  switch (part.kind) {
    case "throw":
      throw new RangeError(name);
    case "note":
      world.variables.count += 1;
      return [world.variables.count, world.now().getTime() - world.started.getTime()];
    case "cancel":
      return tasks.length > 0 ? yield* (tasks[part.task % tasks.length] as Task<unknown>).cancel() : "none";
    case "sequence": {
      const values: unknown[] = [];
      for (const [index, each] of part.parts.entries()) values.push(yield* run(each, `${name}.${index}`, world, tasks));
      return values;
    }
    case "spawn":
      tasks.push(yield* spawn(branch(part.part, `${name}.s`, part.bare, world, tasks)));
      return name;
    case "finally":
      try {
        return yield* run(part.part, `${name}.f`, world, tasks);
      } finally {
        yield* run(part.after, `${name}.g`, world, tasks);
      }
    case "catch":
      try {
        return yield* run(part.part, `${name}.c`, world, tasks);
      } catch (error) {
        return [error, yield* run(part.after, `${name}.h`, world, tasks)];
      }
    default:
      return "none";
  }
}

/** What a part is when it is a single effect. */
function effect(part: Program, name: string, world: World, tasks: Tasks): Effect<unknown> | undefined {
  const branches = (parts: readonly Program[], bare: boolean) =>
    parts.map((each, index) => branch(each, `${name}.${index}`, bare, world, tasks));
  switch (part.kind) {
    case "sleep":
      return sleep(part.ms);
    case "activity":
      return working(part, name, world, tasks);
    case "saga":
      return saga(branch(part.part, `${name}.a`, part.bare, world, tasks), { on: part.on, order: part.order });
    case "undo":
      return compensateNow();
    case "event":
      return awaitEvent(events[part.event], { timeout: part.ms, ...(part.even && { match: (n: number) => n % 2 === 0 }) });
    case "sideEffect":
      return sideEffect(() => {
        if (part.fails) throw new RangeError(name);
        return name;
      });
    case "child":
      return child(interpreted, { part: part.part, name: `${name}.k` }, { id: name, onParentClose: part.policy });
    case "all":
      return all(branches(part.parts, part.bare));
    case "race":
      return race(branches(part.parts, part.bare));
    case "any":
      return any(branches(part.parts, part.bare));
    case "settled":
      return settled(branches(part.parts, part.bare));
    case "map":
      return map(part.parts, (each, index) => branch(each, `${name}.${index}`, part.bare, world, tasks), { concurrency: part.concurrency });
    case "timeout":
      return timeout(branch(part.part, `${name}.t`, part.bare, world, tasks), part.ms);
    case "shield":
      return shield(branch(part.part, `${name}.p`, part.bare, world, tasks));
    case "condition":
      return condition(() => world.variables.log.length >= part.lines, { timeout: part.ms });
    case "join":
      return tasks.length > 0 ? tasks[part.task % tasks.length] : undefined;
    case "select":
      return tasks.length > 0 ? select(tasks) : undefined;
    default:
      return undefined;
  }
}

function working(part: Program & { readonly kind: "activity" }, name: string, world: World, tasks: Tasks): Effect<unknown> {
  const call = work(name).with({ retry: { maxAttempts: part.attempts, backoff: "fixed", initialDelay: retryDelay, jitter: "none" } });
  const { undo } = part;
  return undo === undefined ? call : call.compensate(() => run(undo, `${name}.u`, world, tasks));
}

function branch(part: Program, name: string, bare: boolean, world: World, tasks: Tasks): Effect<unknown> | (() => Flow<unknown>) {
  const single = bare ? effect(part, name, world, tasks) : undefined;
  return single ?? (() => run(part, name, world, tasks));
}
