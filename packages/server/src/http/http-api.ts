/**
 * The HTTP API as a Fastify plugin.
 *
 * 1. It is encapsulated: its parsers, its error handler and its hooks hold for its own routes, and its 404 for what is under `/v1` (and under its prefix, if it has one).
 * 2. Every route is a row of the table and every row has a handler; a handler sees only requests that fit their row.
 * 3. Every error is answered as problem details. Only a fault of ours is a 500, and it is logged.
 */
import { type OperationId, type Operations, type Route, routes } from "@wovyr/sdk/internal";
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { bodyReader } from "./body.ts";
import type { callKinds } from "./call-proof.ts";
import { callerOf, knowCallers, type NodeIdentity } from "./caller.ts";
import { deadLetterHandlers } from "./dead-letter-handlers.ts";
import { Drain } from "./drain.ts";
import { EventStreams } from "./event-streams.ts";
import type { AnyHandler, Handlers } from "./handler.ts";
import type { HttpLog } from "./http-log.ts";
import { instanceHandlers } from "./instance-handlers.ts";
import { LongPolls } from "./long-polls.ts";
import { openapiDocument } from "./openapi.ts";
import { operationHandlers } from "./operation-handlers.ts";
import { publishHandler } from "./publish-handler.ts";
import { addRoute } from "./route.ts";
import { answerProblems, answerUnknown } from "./scope.ts";
import { serverHandlers } from "./server-handlers.ts";
import { startHandlers } from "./start-handlers.ts";
import { streamHandler } from "./stream-handler.ts";
import { taskHandlers } from "./task-handlers.ts";
import { workflowHandlers } from "./workflow-handlers.ts";

export type HttpApiOptions = {
  /** What the API offers, bound to a tenant. */
  readonly operations: (tenant: string) => Operations;
  /** What it offers to the other nodes of its cluster, and how they know each other; without, it takes no requests from them. */
  readonly cluster?: NodeIdentity & { readonly [Kind in keyof typeof callKinds]: (tenant: string) => Operations };
  /** How it goes down, where others have to know of it; default: when the server closes. */
  readonly drain?: Drain;
  /** Where faults are logged; default: Fastify's logger. */
  readonly log?: HttpLog;
  /** Bytes; default 4 MiB. */
  readonly bodyLimit?: number;
  /** How many event streams may be open at once; default 1,000. */
  readonly maxStreams?: number;
  /** How many requests may wait for a result at once; default 10,000. */
  readonly maxWaiting?: number;
  /** Milliseconds between two signs of life on an event stream; default 15,000. */
  readonly heartbeat?: number;
};

/** Makes the plugin: `app.register(httpApi({ operations }), { prefix: "/wovyr" })`. */
export function httpApi(options: HttpApiOptions): FastifyPluginAsync {
  const { drain = new Drain() } = options;
  return async (app) => {
    warnOfShortNames(app);
    if (options.cluster !== undefined) knowCallers(app, options.cluster);
    answerProblems(app, options.log, drain);
    app.addHook("preClose", async () => {
      drain.begin();
      drain.over();
    });
    await mountApi(app, options, drain);
  };
}

const longestName = 255;

/** The host's router decides how long a name in a path may be, before any route sees it. */
function warnOfShortNames({ initialConfig, log }: FastifyInstance): void {
  const most = initialConfig.routerOptions?.maxParamLength ?? initialConfig.maxParamLength ?? longestName;
  if (most >= longestName) return;
  log.warn(
    `Wovyr's ids have up to ${longestName} characters; this Fastify instance refuses more than ${most}: make it with routerOptions: { maxParamLength: 765 }`,
  );
}

const defaults = {
  bodyLimit: 4 * 1024 * 1024,
  maxStreams: 1_000,
  maxWaiting: 10_000,
  heartbeat: 15_000,
};
const stalledBeats = 4;

/** Adds the API to a scope whose errors are answered as problems already; `drain` says when the server closes. */
export async function mountApi(app: FastifyInstance, options: HttpApiOptions, drain: Drain): Promise<void> {
  const { bodyLimit, maxStreams, maxWaiting, heartbeat } = {
    ...defaults,
    ...options,
  };
  const polls = new LongPolls(maxWaiting);
  const streams = new EventStreams({
    maxStreams,
    heartbeat,
    stalled: heartbeat * stalledBeats,
  });
  drain.onClose(() => polls.close());
  drain.onClose(() => streams.close());
  const prefix = app.prefix;
  const handlers: Handlers = {
    ...workflowHandlers,
    ...startHandlers(polls),
    ...instanceHandlers(polls),
    ...deadLetterHandlers,
    ...publishHandler,
    ...operationHandlers,
    ...streamHandler(streams),
    ...taskHandlers(polls),
    ...serverHandlers(
      () => openapiDocument(prefix),
      () => drain.closing,
    ),
  };

  const operations = (request: FastifyRequest): Operations => {
    const { tenant, kind } = callerOf(request);
    return kind === "client" || options.cluster === undefined ? options.operations(tenant) : options.cluster[kind](tenant);
  };
  const context = { operations, log: options.log, prefix };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", bodyReader(bodyLimit));
  if (prefix !== "") answerUnknown(app);
  for (const [route, handler] of rowsUnder(handlers, "/health/", "/openapi.json")) addRoute(app, route, handler, context);
  await app.register(
    async (scope) => {
      answerUnknown(scope);
      for (const [route, handler] of rowsUnder(handlers, "/v1/")) addRoute(scope, route, handler, context);
    },
    { prefix: "/v1" },
  );
}

type Row = readonly [route: Route, handler: AnyHandler];

function rowsUnder(handlers: Handlers, ...beginnings: readonly string[]): Row[] {
  return (Object.keys(routes) as OperationId[])
    .filter((operationId) => beginnings.some((beginning) => routes[operationId].path.startsWith(beginning)))
    .map((operationId) => [routes[operationId], handlers[operationId]]);
}
