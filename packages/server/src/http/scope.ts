import { ApiError } from "@wovyr/sdk/internal";
import type { FastifyInstance } from "fastify";
import { callerOf } from "./caller.ts";
import type { Drain } from "./drain.ts";
import type { HttpLog } from "./http-log.ts";
import { notFound } from "./not-found.ts";
import { sendProblem } from "./problem-reply.ts";

/** Errors of this scope become problems; requests that nobody takes, or that come while the server closes, are turned away before their body is read. */
export function answerProblems(app: FastifyInstance, log: HttpLog | undefined, drain: Drain): void {
  const { prefix } = app;
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply, log));
  app.addHook("onRequest", (request, reply, done) => {
    if (request.is404) done(notFound(request, reply, prefix));
    else if (drain.refuses(callerOf(request).kind) && !request.url.startsWith(`${prefix}/health/`))
      done(new ApiError("This server is shutting down", { code: "SHUTTING_DOWN" }));
    else done();
  });
}

/** What is under this scope's prefix and no route gets this scope's answer. The hook of `answerProblems` has it before this handler. */
export function answerUnknown(scope: FastifyInstance): void {
  scope.setNotFoundHandler((request, reply) => {
    throw notFound(request, reply, scope.prefix);
  });
}
