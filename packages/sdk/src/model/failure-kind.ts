/**
 * What sort of failure an error is: what retries, circuit breakers and people go by.
 *
 * 1. A kind is found without calling anything of the error but getters, and finding it never throws.
 * 2. What no further attempt can mend is `permanent`: the author said so, or the mistake stays one.
 */
import { type ErrorCode, WovyrError } from "./errors.ts";

export type FailureKind =
  /** May be gone at the next attempt: the default. */
  | "transient"
  /** Stays, whatever is tried. */
  | "permanent"
  /** A time limit passed. */
  | "timeout"
  /** Somebody asked for it. */
  | "cancelled"
  /** What lies between failed: a process, the network, the store. */
  | "infrastructure";

export const failureKinds: readonly FailureKind[] = ["transient", "permanent", "timeout", "cancelled", "infrastructure"];

/** Says of what kind an error is; undefined leaves it to who is asked next. */
export type Classifier = (error: unknown) => FailureKind | undefined;

/** The kind that the first classifier says it is, else what the error itself shows. `broken` hears of a classifier that throws or says what is no kind. */
export function classify(error: unknown, classifiers: readonly (Classifier | undefined)[], broken: (cause: unknown) => void): FailureKind {
  for (const classifier of classifiers) {
    if (classifier === undefined) continue;
    try {
      const kind = classifier(error);
      if (kind === undefined) continue;
      if (failureKinds.includes(kind)) return kind;
      broken(new TypeError(`${String(kind)} is no kind of failure; the kinds are ${failureKinds.join(", ")}`));
    } catch (cause) {
      broken(cause);
    }
  }
  return kindOf(error);
}

/** The kind of an error by its class, its code and the code of its cause. */
export function kindOf(error: unknown): FailureKind {
  try {
    return typeof error === "object" && error !== null ? kindOfObject(error) : "transient";
  } catch {
    return "transient"; // a proxy or a getter threw
  }
}

type Facets = {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly kind?: unknown;
  readonly status?: unknown;
  readonly cause?: unknown;
  readonly retryable?: unknown;
};

function kindOfObject(error: Facets): FailureKind {
  if (isInVain(error)) return "permanent";
  const { name, code, kind, status, cause } = error;
  if (name === "ActivityError") return codeOf(cause) === "OUTCOME_UNKNOWN" ? "permanent" : isKind(kind) ? kind : kindOf(cause);
  if (name === "WorkflowError" && typeof status === "string") return workflowKinds[status] ?? kindOf(cause);
  if (name === "TimeoutError" || timeoutCodes.has(code) || timeoutCodes.has(codeOf(cause))) return "timeout";
  if (name === "CancelledError" || code === "CANCELLED") return "cancelled";
  if (betweenCodes.has(code) || betweenCodes.has(codeOf(cause))) return "infrastructure";
  return "transient";
}

const isKind = (value: unknown): value is FailureKind => failureKinds.includes(value as FailureKind);

const codeOf = (cause: unknown): unknown => (typeof cause === "object" && cause !== null ? (cause as Facets).code : undefined);

/** What a run that did not complete is, for those who waited for it. */
const workflowKinds: Readonly<Record<string, FailureKind>> = { TimedOut: "timeout", Cancelled: "cancelled", Terminated: "cancelled" };

const timeoutCodes: ReadonlySet<unknown> = new Set([
  "TIMED_OUT",
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/** Of Node's network and of Wovyr's own calls. */
const betweenCodes: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "UND_ERR_SOCKET",
  "ATTEMPTS_LOST",
  "PAYLOAD_CODEC_FAILED",
  "STORE_UNAVAILABLE",
  "SHUTTING_DOWN",
  "NOT_OWNER",
  "UNREACHABLE",
]);

const hopeless: ReadonlySet<unknown> = new Set<ErrorCode>([
  "NON_RETRYABLE",
  "OUTCOME_UNKNOWN",
  "STEP_GIVEN_UP",
  "TRANSACTION_ENDED",
  "TRANSACTIONS_UNSUPPORTED",
  "PAYLOAD_UNSERIALIZABLE",
  "EFFECT_NOT_YIELDED",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_MALFORMED",
  "INVALID_DEFINITION",
  "INVALID_DURATION",
  "INVALID_OPTION",
  "INVALID_NAME",
  "INVALID_INPUT",
  "INVALID_OUTPUT",
  "FOREIGN_YIELD",
  "FOREIGN_TASK",
  "NONDETERMINISTIC_CALL",
  "TOO_MANY_BRANCHES",
  "TURN_TOO_LARGE",
  "HISTORY_TOO_LONG",
]);

/** Whether another attempt would be in vain: a `NonRetryableError` (also one that crossed a process), or a mistake that stays one. Never throws. */
export function isNonRetryable(error: unknown): boolean {
  try {
    return typeof error === "object" && error !== null && isInVain(error);
  } catch {
    return false; // a proxy or a getter threw
  }
}

function isInVain(error: Facets): boolean {
  const { name, code, retryable } = error;
  if (name === "NonRetryableError" || code === "NON_RETRYABLE") return true;
  return error instanceof WovyrError && (hopeless.has(code) || retryable === false);
}
