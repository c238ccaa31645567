/**
 * Errors on the wire: RFC 9457 problem details.
 *
 * 1. Every error becomes a problem with a code of the catalogue; one that is not in it, or that is a fault of the server, becomes INTERNAL.
 * 2. What a fault of the server says about the server's inside stays in the server's log.
 */
import { ApiError, type ErrorCode, errorCodes, ValidationError, type Violation, WovyrError } from "../model/errors.ts";

/** How many violations one problem lists. */
export const maxViolations = 20;

export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly errors?: readonly Violation[];
  readonly instance?: string;
};

// Statuses from 500 on whose message was written for the caller.
const tellable: ReadonlySet<ErrorCode> = new Set([
  "SHUTTING_DOWN",
  "NOT_OWNER",
  "OWNER_UNREACHABLE",
  "CLUSTER_MISCONFIGURED",
  "WORKFLOW_ELSEWHERE",
  "TIMED_OUT",
]);

const untold: Partial<Record<ErrorCode, string>> = {
  STORE_UNAVAILABLE: "The store cannot be reached, or does not answer, at the moment.",
};

/** The problem that an error is; `base` is the pointer to the value whose validation may have failed. */
export function problemOf(error: unknown, base = ""): Problem {
  const code = error instanceof WovyrError && Object.hasOwn(errorCodes, error.code) ? error.code : "INTERNAL";
  const row = errorCodes[code];
  const status = error instanceof ApiError && error.status >= 400 && error.status <= 599 ? error.status : row.status;
  const told = error instanceof WovyrError && (status < 500 || tellable.has(code));
  return {
    type: `urn:wovyr:error:${code}`,
    title: titleOf(code),
    status,
    detail: told ? error.message : (untold[code] ?? "Something went wrong inside the server; its log says what."),
    code,
    retryable: error instanceof ApiError ? error.retryable : row.retryable,
    ...(told && violationsOf(error, base)),
  };
}

/** How long to wait before the next try, in milliseconds, where waiting helps. */
export function retryAfterOf(error: unknown, problem: Problem): number | undefined {
  if (error instanceof ApiError && error.retryAfter !== undefined) return error.retryAfter;
  return problem.status === 429 || problem.status === 503 ? 1_000 : undefined;
}

/** The error that a problem of the server stands for; `body` is whatever came, `from` is who answered. */
export function errorOfProblem(status: number, body: unknown, retryAfter?: number, from = "The server"): ApiError {
  const problem: Partial<Problem> = typeof body === "object" && body !== null ? body : {};
  const code = typeof problem.code === "string" ? problem.code : codeOfStatus(status);
  return new ApiError(
    typeof problem.detail === "string" ? problem.detail : `${from} answered with status ${status}, and not as a Wovyr server does`,
    {
      code,
      status,
      retryable: typeof problem.retryable === "boolean" ? problem.retryable : gatewayStatuses.has(status),
      errors: Array.isArray(problem.errors) ? problem.errors : [],
      retryAfter,
    },
  );
}

// What stands between client and server answers with these when the server does not.
const gatewayStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

function codeOfStatus(status: number): ErrorCode {
  if (status === 429) return "OVERLOADED";
  if (gatewayStatuses.has(status)) return "UNREACHABLE";
  if (status === 401) return "UNAUTHENTICATED";
  if (status === 403) return "FORBIDDEN";
  if (status === 413) return "BODY_TOO_LARGE";
  return status >= 500 ? "INTERNAL" : "MALFORMED_REQUEST";
}

function violationsOf(error: WovyrError, base: string): { errors?: readonly Violation[] } {
  if (error instanceof ApiError && error.errors.length > 0) return { errors: error.errors };
  if (!(error instanceof ValidationError)) return {};
  return {
    errors: error.violations.slice(0, maxViolations).map(({ pointer, message }) => ({ pointer: base + pointer, message })),
  };
}

function titleOf(code: ErrorCode): string {
  const words = code.toLowerCase().replaceAll("_", " ");
  return words[0]?.toUpperCase() + words.slice(1);
}
