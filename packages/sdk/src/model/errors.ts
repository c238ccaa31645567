/**
 * The catalogue of errors. A code is stable and never reused; its row says how HTTP answers it and whether the same call may succeed later.
 * What users catch are the classes below; what tools match on is `code`.
 */
import type { Duration } from "./duration.ts";
import type { FailureKind } from "./failure-kind.ts";

type CodeRow = { readonly status: number; readonly retryable: boolean };

export const errorCodes = {
  // authoring and running a workflow
  INVALID_DEFINITION: { status: 500, retryable: false },
  INVALID_DURATION: { status: 400, retryable: false },
  INVALID_OPTION: { status: 400, retryable: false },
  INVALID_INPUT: { status: 422, retryable: false },
  INVALID_OUTPUT: { status: 500, retryable: false },
  FOREIGN_YIELD: { status: 500, retryable: false },
  FOREIGN_TASK: { status: 500, retryable: false },
  FOREIGN_AWAIT: { status: 500, retryable: false },
  EFFECT_NOT_YIELDED: { status: 500, retryable: false },
  NONDETERMINISTIC_CALL: { status: 500, retryable: false },
  TOO_MANY_BRANCHES: { status: 500, retryable: false },
  TURN_TOO_LARGE: { status: 500, retryable: false },
  HISTORY_DIVERGED: { status: 500, retryable: false },
  HISTORY_TOO_LONG: { status: 500, retryable: false },
  TURN_NEVER_YIELDS: { status: 500, retryable: false },
  ATTEMPTS_LOST: { status: 500, retryable: false },
  PAYLOAD_UNSERIALIZABLE: { status: 400, retryable: false },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false },
  PAYLOAD_MALFORMED: { status: 400, retryable: false },
  PAYLOAD_CODEC_FAILED: { status: 500, retryable: true },
  ACTIVITY_FAILED: { status: 500, retryable: false },
  RETRY_BUDGET_EXHAUSTED: { status: 500, retryable: false },
  STEP_GIVEN_UP: { status: 500, retryable: false },
  TRANSACTION_ABORTED: { status: 500, retryable: true },
  TRANSACTION_ENDED: { status: 500, retryable: false },
  TRANSACTIONS_UNSUPPORTED: { status: 500, retryable: false },
  CONCURRENCY_LIMIT: { status: 409, retryable: false },
  OUTCOME_UNKNOWN: { status: 500, retryable: false },
  WORKFLOW_FAILED: { status: 500, retryable: false },
  COMPENSATION_FAILED: { status: 500, retryable: false },
  TIMED_OUT: { status: 504, retryable: false },
  CANCELLED: { status: 409, retryable: false },
  TERMINATED: { status: 409, retryable: false },
  NON_RETRYABLE: { status: 500, retryable: false },
  RETRY_AFTER: { status: 503, retryable: true },
  // calls to the orchestrator
  MALFORMED_REQUEST: { status: 400, retryable: false },
  INVALID_CURSOR: { status: 400, retryable: false },
  INVALID_NAME: { status: 400, retryable: false },
  ROUTE_NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  WORKFLOW_NOT_FOUND: { status: 404, retryable: false },
  INSTANCE_NOT_FOUND: { status: 404, retryable: false },
  INSTANCE_CLOSED: { status: 409, retryable: false },
  INSTANCE_EXISTS: { status: 409, retryable: false },
  INSTANCE_PARKED: { status: 409, retryable: false },
  VERSION_NOT_REGISTERED: { status: 409, retryable: false },
  COMPENSATION_NOT_FOUND: { status: 404, retryable: false },
  COMPENSATION_NOT_STUCK: { status: 409, retryable: false },
  INSTANCE_OPEN: { status: 409, retryable: false },
  RUN_EXISTS: { status: 409, retryable: false },
  NOT_A_BORDER: { status: 422, retryable: false },
  INVALID_EXPORT: { status: 422, retryable: false },
  BATCH_NOT_FOUND: { status: 404, retryable: false },
  DEAD_LETTER_NOT_FOUND: { status: 404, retryable: false },
  DEAD_LETTER_DECIDED: { status: 409, retryable: false },
  DECISION_NOT_POSSIBLE: { status: 409, retryable: false },
  TASK_NOT_HELD: { status: 409, retryable: false },
  HANDLER_NOT_FOUND: { status: 404, retryable: false },
  QUERY_FAILED: { status: 422, retryable: false },
  UPDATE_REJECTED: { status: 422, retryable: false },
  UPDATE_FAILED: { status: 422, retryable: false },
  UPDATE_UNFINISHED: { status: 409, retryable: false },
  BODY_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false },
  SCHEMA_VIOLATION: { status: 422, retryable: false },
  IDEMPOTENCY_CONFLICT: { status: 422, retryable: false },
  SINGLETON_BUSY: { status: 409, retryable: true },
  OVERLOADED: { status: 429, retryable: true },
  STORE_UNAVAILABLE: { status: 503, retryable: true },
  SHUTTING_DOWN: { status: 503, retryable: true },
  NOT_OWNER: { status: 503, retryable: true },
  OWNER_UNREACHABLE: { status: 503, retryable: true },
  CLUSTER_MISCONFIGURED: { status: 503, retryable: true },
  UNAUTHENTICATED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  CLUSTER_SECRET_REFUSED: { status: 403, retryable: false },
  WRONG_NODE: { status: 421, retryable: false },
  WORKFLOW_ELSEWHERE: { status: 503, retryable: true },
  UNREACHABLE: { status: 503, retryable: true },
  INTERNAL: { status: 500, retryable: false },
  // hosting
  STORE_LOCKED: { status: 500, retryable: false },
  STORE_INCOMPATIBLE: { status: 500, retryable: false },
  INSECURE_LISTEN: { status: 500, retryable: false },
} as const satisfies Record<string, CodeRow>;

export type ErrorCode = keyof typeof errorCodes;

/** A class of errors, as `errors: [OutOfStock]` lists it. */
export type ErrorClass = abstract new (...args: never[]) => Error;

export type WovyrErrorOptions = ErrorOptions & { readonly code?: ErrorCode };

/** The root of every error that Wovyr throws; `code` is stable. */
export class WovyrError extends Error {
  readonly code: ErrorCode;
  constructor(message: string, options: WovyrErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = options.code ?? "INTERNAL";
    Object.defineProperty(this, "name", {
      value: new.target.name,
      configurable: true,
      writable: true,
    });
  }
}

/** An activity that failed for good: `cause` is what its last attempt threw, or the `TimeoutError` that ended it. */
export class ActivityError extends WovyrError {
  readonly activity: string;
  readonly attempts: number;
  /** What the failure was classified as. */
  readonly kind: FailureKind;
  constructor(
    message: string,
    details: ErrorOptions & {
      activity: string;
      attempts: number;
      kind?: FailureKind;
      code?: ErrorCode;
    },
  ) {
    super(message, {
      code: details.code ?? "ACTIVITY_FAILED",
      ...("cause" in details && { cause: details.cause }),
    });
    this.activity = details.activity;
    this.attempts = details.attempts;
    this.kind = details.kind ?? "transient";
  }
}

export type WorkflowOutcome = "Failed" | "TimedOut" | "Cancelled" | "Terminated" | "Compensated" | "CompensationFailed";

/** What was not undone: by its own id (`~2`), and the effect that it was to undo by its id and name. */
export type CompensationReport = {
  readonly effect: string;
  readonly undoes: string;
  readonly name: string;
  readonly outcome: "failed" | "skipped";
};

/** Something could not be undone, or was not to be: `failures` says what, `errors` why. */
export class CompensationError extends WovyrError {
  readonly failures: readonly CompensationReport[];
  readonly errors: readonly unknown[];
  constructor(message: string, details: ErrorOptions & { failures: readonly CompensationReport[]; errors: readonly unknown[] }) {
    super(message, {
      code: "COMPENSATION_FAILED",
      ...("cause" in details && { cause: details.cause }),
    });
    this.failures = details.failures;
    this.errors = details.errors;
  }
}

/** A run that did not complete: what `child(…)` throws in a workflow and `handle.result()` rejects with. */
export class WorkflowError extends WovyrError {
  readonly instanceId: string;
  readonly workflow: string;
  readonly status: WorkflowOutcome;
  /** What was not undone, of a run that ended as `CompensationFailed`; its own failure is the `cause`. */
  declare readonly compensation?: Error;
  constructor(
    message: string,
    details: ErrorOptions & {
      instanceId: string;
      workflow: string;
      status: WorkflowOutcome;
      code?: ErrorCode;
      compensation?: Error;
    },
  ) {
    super(message, {
      code: details.code ?? "WORKFLOW_FAILED",
      ...("cause" in details && { cause: details.cause }),
    });
    this.instanceId = details.instanceId;
    this.workflow = details.workflow;
    this.status = details.status;
    if (details.compensation !== undefined) this.compensation = details.compensation;
  }
}

export type TimeoutKind = "scheduleToStart" | "startToClose" | "scheduleToClose" | "heartbeat" | "wait" | "run" | "execution" | "scope";

/** A time limit that passed; `timeout` says which, `limit` how long it is. */
export class TimeoutError extends WovyrError {
  readonly timeout: TimeoutKind;
  /** Milliseconds. */
  readonly limit: number | undefined;
  constructor(message: string, timeout: TimeoutKind = "wait", limit?: number, options: ErrorOptions = {}) {
    super(message, { code: "TIMED_OUT", ...options });
    this.timeout = timeout;
    this.limit = limit;
  }
}

/** An attempt that was to do its work once at most may have done it, and nobody knows: `cause` is what ended it. It is not made again. */
export class OutcomeUnknownError extends WovyrError {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, { code: "OUTCOME_UNKNOWN", ...options });
  }
}

/** Thrown at the yield of a branch that was cancelled; swallowing it does not revive the branch. */
export class CancelledError extends WovyrError {
  constructor(message = "cancelled", options: ErrorOptions = {}) {
    super(message, { code: "CANCELLED", ...options });
  }
}

/** The code asked for something else than what history recorded, or awaited something that is no effect. */
export class DeterminismError extends WovyrError {
  /** Number of the history event at which code and history part; absent on a first run. */
  readonly seq: number | undefined;
  readonly expected: string | undefined;
  readonly got: string | undefined;
  /** `file:line:column` of the yield. */
  readonly site: string | undefined;
  /** `file:line` of what history recorded instead, where it was recorded with its line. */
  readonly recordedAt: string | undefined;
  /** What marks of changes (`patched`) have to do with it. */
  readonly patches: string | undefined;
  constructor(
    message: string,
    details: {
      code?: ErrorCode;
      seq?: number | undefined;
      expected?: string | undefined;
      got?: string | undefined;
      site?: string | undefined;
      recordedAt?: string | undefined;
      patches?: string | undefined;
    } = {},
  ) {
    super(message, { code: details.code ?? "HISTORY_DIVERGED" });
    this.seq = details.seq;
    this.expected = details.expected;
    this.got = details.got;
    this.site = details.site;
    this.recordedAt = details.recordedAt;
    this.patches = details.patches;
  }
}

/** A value that cannot be stored; `path` points at it (`$.items[3].run`). */
export class PayloadError extends WovyrError {
  readonly path: string | undefined;
  constructor(message: string, details: ErrorOptions & { code: ErrorCode; path?: string }) {
    super(message, {
      code: details.code,
      ...("cause" in details && { cause: details.cause }),
    });
    this.path = details.path;
  }
}

export type Violation = {
  /** JSON pointer to the offending value. */
  readonly pointer: string;
  readonly message: string;
};

/** A value that does not fit its schema; the message lists the first violations. */
export class ValidationError extends WovyrError {
  readonly violations: readonly Violation[];
  constructor(
    message: string,
    details: ErrorOptions & {
      violations: readonly Violation[];
      code?: "INVALID_INPUT" | "INVALID_OUTPUT";
    },
  ) {
    super(message, {
      code: details.code ?? "INVALID_INPUT",
      ...("cause" in details && { cause: details.cause }),
    });
    this.violations = details.violations;
  }
}

/** The orchestrator refused a call, or could not be reached. */
export class ApiError extends WovyrError {
  readonly status: number;
  readonly retryable: boolean;
  readonly errors: readonly Violation[];
  /** How long to wait before the next try, in milliseconds. */
  readonly retryAfter: number | undefined;
  constructor(
    message: string,
    details: ErrorOptions & {
      code: ErrorCode;
      status?: number;
      retryable?: boolean;
      errors?: readonly Violation[];
      retryAfter?: number | undefined;
    },
  ) {
    super(message, {
      code: details.code,
      ...("cause" in details && { cause: details.cause }),
    });
    this.status = details.status ?? errorCodes[details.code].status;
    this.retryable = details.retryable ?? errorCodes[details.code].retryable;
    this.errors = details.errors ?? [];
    this.retryAfter = details.retryAfter;
  }
}

/** Throw it from an activity to end its retries at once. */
export class NonRetryableError extends WovyrError {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, { code: "NON_RETRYABLE", ...options });
  }
}

/** Throw it from an activity to choose when the next attempt starts. */
export class RetryAfterError extends WovyrError {
  readonly after: Duration | Date;
  constructor(message: string, after: Duration | Date, options: ErrorOptions = {}) {
    super(message, { code: "RETRY_AFTER", ...options });
    this.after = after;
  }
}

/** A mistake in workflow code, found when it ran: what was wrong, where, and what to write instead. */
export class AuthoringError extends WovyrError {
  constructor(message: string, code: ErrorCode) {
    super(message, { code });
  }
}
