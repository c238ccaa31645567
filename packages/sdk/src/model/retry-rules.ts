/**
 * Which errors a retry policy treats in a way of their own.
 *
 * 1. An error fits a class when it is of it, or has its name: an error that crossed a process fits as well.
 * 2. Looking whether a rule fits never throws: a predicate that throws does not fit.
 */
import { type ErrorClass, WovyrError } from "./errors.ts";
import { type FailureKind, failureKinds } from "./failure-kind.ts";
import { checkOptions, oneOf } from "./option.ts";
import type { RetryDelays } from "./retry-policy.ts";

/** A class, a code, what an error has, or a function that says so. */
export type ErrorMatcher = ErrorClass | string | ErrorFeatures | ((error: unknown, kind: FailureKind) => boolean);

/** Everything that is given must be so. */
export type ErrorFeatures = {
  readonly name?: string | undefined;
  readonly code?: string | undefined;
  readonly kind?: FailureKind | undefined;
};

export type RetryRule = {
  readonly when: ErrorMatcher;
  /** `false`: no further attempt. An object: options that go over the policy's for this failure. */
  readonly retry: false | RetryDelays;
};

/** Throws INVALID_OPTION or INVALID_DURATION; `check` looks at the options of a rule. */
export function checkRules(rules: unknown, check: (delays: RetryDelays, what: string) => unknown): void {
  if (!Array.isArray(rules)) throw invalid("retry.rules must be a list of { when, retry }");
  rules.forEach((rule: unknown, index) => {
    const what = `retry.rules[${index}]`;
    checkOptions(rule, ["when", "retry"], what);
    const { when, retry } = (rule ?? {}) as Partial<RetryRule>;
    checkMatcher(when, `${what}.when`);
    if (retry === false) return;
    if (typeof retry !== "object" || retry === null) throw invalid(`${what}.retry must be false or an object of options`);
    checkOptions(retry, ["maxAttempts", "maxDuration", "backoff", "initialDelay", "maxDelay", "factor", "jitter"], `${what}.retry`);
    check(retry, `${what}.retry`);
  });
}

function checkMatcher(when: unknown, what: string): void {
  if (typeof when === "function" || (typeof when === "string" && when !== "")) return;
  if (typeof when !== "object" || when === null)
    throw invalid(`${what} must be an error class, a code, { name?, code?, kind? } or a function`);
  checkOptions(when, ["name", "code", "kind"], what);
  const { name, code, kind } = when as ErrorFeatures;
  if (name === undefined && code === undefined && kind === undefined)
    throw invalid(`${what} names nothing: give it a name, a code or a kind`);
  if (kind !== undefined) oneOf(kind, failureKinds, `${what}.kind`);
}

const invalid = (message: string) => new WovyrError(message, { code: "INVALID_OPTION" });

/** The first rule that an error fits. `broken` hears of a predicate that throws. */
export function ruleFor(
  rules: readonly RetryRule[],
  error: unknown,
  kind: FailureKind,
  broken: (cause: unknown) => void,
): RetryRule | undefined {
  return rules.find(({ when }) => {
    try {
      return fits(when, error, kind);
    } catch (cause) {
      broken(cause);
      return false;
    }
  });
}

function fits(when: ErrorMatcher, error: unknown, kind: FailureKind): boolean {
  const { name, code } = (typeof error === "object" && error !== null ? error : {}) as { name?: unknown; code?: unknown };
  if (typeof when === "string") return code === when;
  if (typeof when === "object")
    return (
      (when.name === undefined || when.name === name) &&
      (when.code === undefined || when.code === code) &&
      (when.kind === undefined || when.kind === kind)
    );
  if (isErrorClass(when)) return error instanceof when || isNamed(when, error, name);
  return when(error, kind) === true;
}

const isErrorClass = (value: ErrorClass | ((...args: never[]) => unknown)): value is ErrorClass =>
  value === Error || (value as { prototype?: unknown }).prototype instanceof Error;

/** The class's own name, or the one that its errors have. */
function isNamed(errorClass: ErrorClass, error: unknown, name: unknown): boolean {
  if (typeof name !== "string" || typeof error !== "object") return false;
  if (errorClass === Error) return true;
  return name === errorClass.name || (Object.hasOwn(errorClass.prototype, "name") && name === errorClass.prototype.name);
}
