import assert from "node:assert/strict";
import { test } from "node:test";
import { type Route, routes } from "@wovyr/sdk/internal";
import Fastify from "fastify";
import { createHttpServer } from "../../src/http/create-http-server.ts";
import { httpApi } from "../../src/http/http-api.ts";
import { scripted } from "./scripted-operations.ts";

type Node = { readonly [key: string]: unknown };

async function documentOf(): Promise<Node> {
  const app = createHttpServer({ operations: () => scripted({}) });
  const response = await app.inject({ url: "/openapi.json" });
  await app.close();
  assert.match(String(response.headers["content-type"]), /^application\/json/);
  return response.json();
}

function* nodes(node: unknown, path = "#"): Generator<readonly [path: string, node: Node]> {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) yield [path, node as Node];
  for (const [key, value] of Object.entries(node)) yield* nodes(value, `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
}

function at(document: Node, pointer: string): unknown {
  return pointer
    .slice(2)
    .split("/")
    .reduce<unknown>((node, key) => (node as Node | undefined)?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], document);
}

test("the document holds exactly the operations of the route table", async () => {
  const document = await documentOf();
  assert.equal(document.openapi, "3.1.0");
  const operations = Object.entries(document.paths as Node).flatMap(([path, item]) =>
    Object.entries(item as Node).map(([method, operation]) => `${(operation as Node).operationId} ${method.toUpperCase()} ${path}`),
  );
  const expected = Object.entries<Route>(routes).map(([operationId, { method, path }]) => `${operationId} ${method} ${path}`);
  assert.deepEqual(operations.sort(), expected.sort());
});

test("every reference leads somewhere, every component is used, and nothing of the schema library is left", async () => {
  const document = await documentOf();
  const used = new Set<string>();
  for (const [path, node] of nodes(document)) {
    assert.ok(!("$id" in node), path);
    if (typeof node.$ref !== "string") continue;
    used.add(node.$ref);
    assert.ok(at(document, node.$ref) !== undefined, `${path} -> ${node.$ref}`);
  }
  const components = Object.keys((document.components as { schemas: Node }).schemas);
  assert.deepEqual(
    components.filter((name) => !used.has(`#/components/schemas/${name}`)),
    [],
  );
  for (const name of [
    "Start",
    "Result",
    "Instance",
    "InstanceSummary",
    "Problem",
    "Failure",
    "Status",
    "ErrorCode",
    "HistoryEvent",
    "Batch",
  ])
    assert.ok(components.includes(name), name);
});

test("every operation declares its parameters, its body and its answers", async () => {
  const document = await documentOf();
  for (const [operationId, route] of Object.entries<Route>(routes)) {
    const operation = (document.paths as Record<string, Record<string, Node>>)[route.path]?.[route.method.toLowerCase()];
    assert.ok(operation);
    assert.ok(typeof operation.summary === "string", operationId);
    const parameters = (operation.parameters ?? []) as { name: string; in: string; required?: boolean; schema: Node }[];
    const inPath = parameters.filter((parameter) => parameter.in === "path");
    assert.deepEqual(
      inPath.map(({ name }) => `{${name}}`),
      route.path.match(/\{\w+\}/g) ?? [],
      operationId,
    );
    assert.ok(inPath.every(({ required }) => required));
    assert.deepEqual(
      parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
      Object.keys(route.query ?? {}),
    );
    assert.equal(new Set(parameters.map(({ name, in: place }) => `${place} ${name}`)).size, parameters.length);
    for (const { schema } of parameters) assert.ok("type" in schema || "$ref" in schema, operationId);
    assert.equal(
      parameters.some(({ name }) => name === "Idempotency-Key"),
      route.changes === true,
    );
    assert.equal("requestBody" in operation, route.body !== undefined || route.lines !== undefined);
    const responses = operation.responses as Record<string, { description: string; content?: Node }>;
    for (const [status, { description, content }] of Object.entries(responses)) {
      assert.match(status, /^(default|[2-5]\d\d)$/);
      assert.ok(description.length > 0);
      for (const type of Object.keys(content ?? {})) assert.match(type, /^[a-z]+\/[a-z.+-]+$/);
    }
    for (const status of Object.keys(route.answers)) assert.ok(status in responses, `${operationId} ${status}`);
    assert.ok("default" in responses && "400" in responses && "500" in responses, operationId);
  }
});

test("a body's schema says what is refused: unknown properties and values outside of an enumeration", async () => {
  const { schemas } = (await documentOf()).components as { schemas: Record<string, Node> };
  for (const name of ["Start", "BatchStart", "Batch", "Event", "Cancel", "Terminate"])
    assert.equal(schemas[name]?.additionalProperties, false, name);
  assert.deepEqual(at({ schemas }, "#/schemas/Start/properties/onConflict/enum"), ["fail", "return"]);
  assert.deepEqual(at({ schemas }, "#/schemas/Failure/properties/cause"), { $ref: "#/components/schemas/Failure" });
});

test("the document says where the API is mounted", async () => {
  const app = Fastify();
  app.register(httpApi({ operations: () => scripted({}) }), { prefix: "/flows" });
  const document = (await app.inject({ url: "/flows/openapi.json" })).json();
  await app.close();
  assert.deepEqual(document.servers, [{ url: "/flows" }]);
});
