/** The OpenAPI 3.1 document, made from the route table. A schema with an `$id` becomes a component of that name. */
import type { TSchema } from "@sinclair/typebox";
import {
  bodyErrors,
  changeErrors,
  cloudEventType,
  commonErrors,
  type ErrorCode,
  errorCodes,
  idempotencyKey,
  mediaTypes,
  nameSchema,
  ProblemSchema,
  type Route,
  type RouteAnswer,
  routes,
} from "@wovyr/sdk/internal";

type Json = { [key: string]: unknown };

/** `prefix` is where the API is mounted, or an empty text. */
export function openapiDocument(prefix: string): Json {
  const components = new Map<string, unknown>();
  const paths: Record<string, Json> = {};
  for (const [operationId, route] of Object.entries<Route>(routes)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(operationId, route, components) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Wovyr",
      version: "1",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: "Durable functions for TypeScript: start workflows, watch them, talk to them.",
    },
    servers: [{ url: prefix === "" ? "/" : prefix }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

function operationOf(operationId: string, route: Route, components: Map<string, unknown>): Json {
  const parameters = [...pathParameters(route), ...queryParameters(route, components), ...headerParameters(operationId, route)];
  return {
    operationId,
    summary: route.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && {
      requestBody: {
        required: route.body.required,
        content: requestContent(jsonOf(route.body.schema, components), route.body.cloudEvent === true),
      },
    }),
    ...(route.lines !== undefined && {
      requestBody: {
        required: true,
        description: route.lines.description,
        content: { [mediaTypes.lines]: { schema: { type: "string" } } },
      },
    }),
    responses: {
      ...errorAnswers(route, components),
      ...successAnswers(route, components),
    },
  };
}

function pathParameters(route: Route): Json[] {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: nameSchema,
  }));
}

function queryParameters(route: Route, components: Map<string, unknown>): Json[] {
  return Object.entries(route.query ?? {}).map(([name, { description, schema }]) => ({
    name,
    in: "query",
    description,
    schema: jsonOf(schema, components),
  }));
}

function headerParameters(operationId: string, route: Route): Json[] {
  if (route.changes)
    return [
      {
        name: "Idempotency-Key",
        in: "header",
        description: "The same request with the same key is done once.",
        schema: idempotencyKey,
      },
    ];
  if (operationId !== "streamInstance") return [];
  return [
    {
      name: "Last-Event-ID",
      in: "header",
      description: "The last event that the client has: `<runId>:<seq>`.",
      schema: { type: "string" },
    },
  ];
}

const typedBody = {
  description: "The same body with types kept, as the SDK writes it: plain JSON where that is enough, else a text that begins with `~`.",
};

function bodyContent(schema: unknown): Json {
  return {
    [mediaTypes.plain]: { schema },
    [mediaTypes.typed]: { schema: typedBody },
  };
}

function requestContent(schema: unknown, cloudEvent: boolean): Json {
  return cloudEvent ? { [cloudEventType]: { schema }, ...bodyContent(schema) } : bodyContent(schema);
}

function successAnswers(route: Route, components: Map<string, unknown>): Json {
  return Object.fromEntries(Object.entries<RouteAnswer>(route.answers).map(([status, answer]) => [status, answerOf(answer, components)]));
}

function answerOf({ description, schema, type, text, headers }: RouteAnswer, components: Map<string, unknown>): Json {
  return {
    description,
    ...(headers !== undefined && {
      headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: "string" } }])),
    }),
    ...(schema !== undefined && {
      content: { ...bodyContent(jsonOf(schema, components)), ...(text !== undefined && { [text]: { schema: { type: "string" } } }) },
    }),
    ...(type !== undefined && {
      content: {
        [type]: {
          schema: type === mediaTypes.plain ? { type: "object" } : { type: "string" },
        },
      },
    }),
  };
}

function errorAnswers(route: Route, components: Map<string, unknown>): Json {
  const problem = {
    [mediaTypes.problem]: { schema: jsonOf(ProblemSchema, components) },
  };
  const answers: Json = {
    default: { description: "A problem.", content: problem },
  };
  for (const [status, codes] of codesByStatus(route)) {
    const retry = status === 429 || status === 503 ? { headers: { "Retry-After": { schema: { type: "integer" } } } } : {};
    answers[status] = {
      description: codes.join(", "),
      ...retry,
      content: problem,
    };
  }
  return answers;
}

function codesByStatus(route: Route): Map<number, ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const codes = byStatus.get(errorCodes[code].status) ?? [];
    if (!codes.includes(code)) codes.push(code);
    byStatus.set(errorCodes[code].status, codes);
  }
  return byStatus;
}

/** Every code that a route may answer with. */
export function errorsOf(route: Route): readonly ErrorCode[] {
  return [...commonErrors, ...(route.body || route.lines ? bodyErrors : []), ...(route.changes ? changeErrors : []), ...route.errors];
}

/** A schema as JSON, with references to components in place of the named schemas in it. */
function jsonOf(schema: TSchema, components: Map<string, unknown>): unknown {
  return referenced(JSON.parse(JSON.stringify(schema)), components);
}

function referenced(node: unknown, components: Map<string, unknown>): unknown {
  if (Array.isArray(node)) return node.map((item) => referenced(item, components));
  if (typeof node !== "object" || node === null) return node;
  const { $id, $ref, ...rest } = node as { $id?: unknown; $ref?: unknown };
  if (typeof $ref === "string") return { $ref: `#/components/schemas/${$ref}` };
  const plain = () => Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, referenced(value, components)]));
  if (typeof $id !== "string") return plain();
  if (!components.has($id)) {
    components.set($id, undefined);
    components.set($id, plain());
  }
  return { $ref: `#/components/schemas/${$id}` };
}
