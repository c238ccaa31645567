import type { Socket } from "node:net";
import { ApiError, mediaTypes, problemOf } from "@wovyr/sdk/internal";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions } from "fastify";
import { knowCallers } from "./caller.ts";
import { Drain } from "./drain.ts";
import { type HttpApiOptions, mountApi } from "./http-api.ts";
import { sendProblem } from "./problem-reply.ts";
import { answerProblems, answerUnknown } from "./scope.ts";

export type HttpServerOptions = HttpApiOptions & {
  /** A pino logger, or whether and how Fastify makes one; default: none. */
  readonly logger?: FastifyBaseLogger | FastifyServerOptions["logger"];
  /** Milliseconds that requests under way get when the server closes; default 10,000. */
  readonly drainTimeout?: number;
};

/** Names have 255 characters at most, but may come percent-encoded. */
const maxParamLength = 255 * 3;
const requestTimeout = 60_000;
const defaultDrainTimeout = 10_000;
/** Milliseconds: answers that are being written. */
const lastMoment = 50;

/** The Fastify instance that serves the API by itself; `listen` it, add to it, or `inject` into it. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { logger, log, drain = new Drain(), drainTimeout = defaultDrainTimeout } = options;
  const app: FastifyInstance = Fastify({
    ...(isLogger(logger) ? { loggerInstance: logger } : { logger: logger ?? false }),
    routerOptions: { maxParamLength },
    requestTimeout,
    forceCloseConnections: true,
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => void sendProblem(error, request, reply, log),
    clientErrorHandler: answerBrokenRequest,
  });
  if (options.cluster !== undefined) knowCallers(app, options.cluster);
  answerProblems(app, log, drain);
  answerUnknown(app);
  app.addHook("onRequest", (_request, reply, done) => {
    drain.enter(reply.raw);
    done();
  });
  app.addHook("preClose", async () => {
    // Who has begun the end before has given them that time already.
    const limit = drain.closing ? lastMoment : drainTimeout;
    drain.begin();
    drain.over();
    await drain.idle(limit);
  });
  app.register((scope) => mountApi(scope, options, drain));
  return app;
}

function isLogger(logger: HttpServerOptions["logger"]): logger is FastifyBaseLogger {
  return typeof logger === "object" && logger !== null && "child" in logger;
}

const brokenRequests: Readonly<Record<string, { status: number; line: string; detail: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    line: "408 Request Timeout",
    detail: "The request did not arrive in time",
  },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    line: "431 Request Header Fields Too Large",
    detail: "The headers are too long",
  },
};

/** Answers what is no HTTP request at all. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  const { status, line, detail } = brokenRequests[error.code ?? ""] ?? {
    status: 400,
    line: "400 Bad Request",
    detail: "This is no HTTP request",
  };
  const body = JSON.stringify(problemOf(new ApiError(detail, { code: "MALFORMED_REQUEST", status })));
  if (socket.writable) {
    socket.write(
      `HTTP/1.1 ${line}\r\ncontent-type: ${mediaTypes.problem}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroySoon();
}
