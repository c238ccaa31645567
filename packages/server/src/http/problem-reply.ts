import { ApiError, headerNames, mediaTypes, type Problem, problemOf, retryAfterOf, WovyrError } from "@wovyr/sdk/internal";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpLog } from "./http-log.ts";

/** Answers with the problem that an error is; a fault of the server is logged with its stack. */
export function sendProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: HttpLog | undefined,
  base?: string,
): FastifyReply {
  const known = errorOfFramework(error);
  const problem = problemOf(known, base);
  if (isFault(problem)) logFault(error, request, log);
  const retryAfter = retryAfterOf(known, problem);
  if (retryAfter !== undefined) reply.header(headerNames.retryAfter, String(Math.ceil(retryAfter / 1_000)));
  return reply
    .code(problem.status)
    .header("content-type", mediaTypes.problem)
    .send(JSON.stringify(withOccurrence(problem, request)));
}

/** Logs what ended a reply that had begun, if it is a fault of the server: its status cannot tell any more. */
export function logLate(error: unknown, request: FastifyRequest, log: HttpLog | undefined): void {
  if (isFault(problemOf(error))) logFault(error, request, log);
}

function isFault({ status, retryable }: Problem): boolean {
  return status >= 500 && !retryable;
}

function withOccurrence(problem: Problem, request: FastifyRequest): Problem {
  return problem.code === "INTERNAL" ? { ...problem, instance: `urn:wovyr:request:${request.id}` } : problem;
}

function logFault(error: unknown, request: FastifyRequest, log: HttpLog | undefined): void {
  const message = `${request.method} ${request.url.split("?", 1)[0]} failed`;
  if (log === undefined) request.log.error({ err: error }, message);
  else log.error(message, { error, request: request.id });
}

/** Fastify's own errors, as errors of the catalogue. */
function errorOfFramework(error: unknown): unknown {
  if (error instanceof WovyrError || !(error instanceof Error)) return error;
  const code: unknown = Reflect.get(error, "code");
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    return new ApiError("This is no content type that can be read", {
      code: "UNSUPPORTED_MEDIA_TYPE",
      cause: error,
    });
  }
  if (code === "FST_ERR_MAX_PARAM_LENGTH")
    return new ApiError("A name in the path is longer than 255 characters", {
      code: "INVALID_NAME",
      cause: error,
    });
  const status: unknown = Reflect.get(error, "statusCode");
  if (typeof code !== "string" || !code.startsWith("FST_") || typeof status !== "number" || status < 400 || status >= 500) return error;
  return new ApiError(code === "FST_ERR_BAD_URL" ? "The path has a percent sign that begins no UTF-8 character" : error.message, {
    code: "MALFORMED_REQUEST",
    cause: error,
  });
}
