/** Checks of what a test hands in: each throws INVALID_OPTION with what is wrong, where, and what to give instead. */
import { type AnyWorkflow, WovyrError } from "@wovyr/sdk";

export function refuse(message: string): never {
  throw new WovyrError(message, { code: "INVALID_OPTION" });
}

/** A value as a message shows it: its text where that is short, and else its type. */
export function shown(value: unknown): string {
  if (typeof value === "string") return value.length <= 60 ? JSON.stringify(value) : "a long text";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : `the Date ${value.toISOString()}`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value instanceof Promise) return "a promise (is an `await` missing?)";
  if (typeof value === "function") return "activity" in value ? `the activity "${String(value.activity)}"` : "a function";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

export function checkFlag(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== "boolean") refuse(`${what} must be true or false, not ${shown(value)}`);
}

export function checkOneOf(value: unknown, allowed: readonly string[], what: string): void {
  if (value === undefined || allowed.includes(value as string)) return;
  refuse(`${what} must be ${allowed.map((each) => JSON.stringify(each)).join(" or ")}, not ${shown(value)}`);
}

export function checkWhole(value: unknown, least: number, most: number, what: string): void {
  if (value === undefined) return;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range =
    most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least.toLocaleString("en")} to ${most.toLocaleString("en")}`;
  refuse(`${what} must be a whole number ${range}, not ${shown(value)}`);
}

export function checkSeed(value: unknown, what: string): void {
  if (value !== undefined && !Number.isSafeInteger(value)) refuse(`${what} must be a whole number, not ${shown(value)}`);
}

export function checkFunction(value: unknown, what: string): void {
  if (value !== undefined && typeof value !== "function") refuse(`${what} must be a function, not ${shown(value)}`);
}

export function checkDate(value: unknown, what: string): void {
  if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) return;
  refuse(`${what} must be a valid Date (new Date("2026-01-01T00:00:00Z")), not ${shown(value)}`);
}

export function checkEvents(events: unknown, what: string): void {
  if (!Array.isArray(events)) refuse(`${what} takes the events of a run (await env.history(id)), not ${shown(events)}`);
}

export function checkWorkflow(value: unknown, what: string): asserts value is AnyWorkflow {
  const isWorkflow =
    typeof value === "object" && value !== null && typeof (value as { definition?: { run?: unknown } }).definition?.run === "function";
  if (isWorkflow) return;
  const hint =
    typeof value === "function" && "activity" in value
      ? ": activities are not registered, the workflows that call them bring them along"
      : ": it takes what `workflow(…)` returned";
  refuse(`${what} is ${shown(value)}${hint}`);
}

export function checkWorkflows(value: unknown, what: string): void {
  if (!Array.isArray(value)) refuse(`${what} must be a list of workflows ([order, refund]), not ${shown(value)}`);
  for (const [index, each] of value.entries()) checkWorkflow(each, `item ${index} of ${what}`);
}
