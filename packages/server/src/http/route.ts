/** One row of the route table, served. */
import { checkName, mediaTypes, type Operations, type Route, readQuery, type View, viewOf } from "@wovyr/sdk/internal";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Answer, bodyText, contentTypes, taken } from "./answer.ts";
import { type BodyConfig, bodyOf, linesOf } from "./body.ts";
import { bodyCheck } from "./body-check.ts";
import { cloudEventOf, dataPointer } from "./cloud-event.ts";
import type { AnyHandler } from "./handler.ts";
import type { HttpLog } from "./http-log.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { logLate, sendProblem } from "./problem-reply.ts";

export type RouteContext = {
  readonly operations: (request: FastifyRequest) => Operations;
  readonly log: HttpLog | undefined;
  /** The prefix that the API is mounted under, or an empty text. */
  readonly prefix: string;
};

/** Adds the route to `app`, which stands at some prefix of its path; `handler` sees only requests that fit the row. */
export function addRoute(app: FastifyInstance, route: Route, handler: AnyHandler, { operations, log, prefix }: RouteContext): void {
  const check = route.body && bodyCheck(route.body.schema);
  const query = route.query ?? {};
  const validated = Object.keys(route.body?.schema.properties ?? {}).find(
    (property) => property === "input" || property === "payload" || property === "output",
  );
  const base = validated === undefined ? "" : `/${validated}`;
  const cloudEvent = route.body?.cloudEvent === true;
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<string | undefined> => {
    const names = request.params as Record<string, string>;
    for (const name in names) checkName(names[name], `the ${name} in the path`);
    const view = viewOf(request.headers.accept);
    const call = {
      operations: operations(request),
      names,
      idempotencyKey: route.changes && idempotencyKeyOf(request),
      query: readQuery(query, searchOf(request)),
      body: check && (cloudEvent ? cloudEventOf(request, route, check) : checked(bodyOf(request, route), check)),
      lines: route.lines && linesOf(request),
      view,
      prefix,
      request,
      reply,
    };
    try {
      const answer = await handler(call as never);
      return answer === taken ? undefined : written(answer, reply, view);
    } catch (error) {
      if (!reply.sent) throw error;
      logLate(error, request, log);
      return undefined;
    }
  };
  app.route({
    method: route.method,
    url: route.path.slice(app.prefix.length - prefix.length).replaceAll(/\{(\w+)\}/g, ":$1"),
    // A HEAD of a stream would open one.
    exposeHeadRoute: !streams.has(route.answers[200]?.type ?? ""),
    config: { bodyLimit: route.lines?.limit } satisfies BodyConfig,
    errorHandler: (error, request, reply) => sendProblem(error, request, reply, log, cloudEvent ? dataPointer(request) : base),
    handler: serve,
  });
}

const streams: ReadonlySet<string> = new Set([mediaTypes.events, mediaTypes.lines]);

function checked(body: unknown, check: (body: unknown) => void): unknown {
  check(body);
  return body;
}

function searchOf({ url }: FastifyRequest): string {
  const at = url.indexOf("?");
  return at < 0 ? "" : url.slice(at + 1);
}

function written({ status, value, text, type, headers }: Answer, reply: FastifyReply, view: View): string {
  reply.code(status);
  if (headers !== undefined) reply.headers(headers);
  if (status !== 204) reply.header("content-type", type ?? contentTypes[view]);
  return text ?? bodyText(value, view);
}
