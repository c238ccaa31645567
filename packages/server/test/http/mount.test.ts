/** The API as a guest in somebody else's Fastify instance. */
import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify, { type FastifyInstance } from "fastify";
import { httpApi } from "../../src/http/http-api.ts";
import { scripted } from "./scripted-operations.ts";

const operations = () =>
  scripted({
    start: async ({ input }) => ({ id: "a", runId: "r", status: "Running", created: true, replayed: false, input }) as never,
    getWorkflow: async () => {
      throw new Error("a fault");
    },
  });

function host(prefix?: string): FastifyInstance {
  const app = Fastify();
  app.post("/own", async (request) => ({ own: request.body }));
  app.get("/own/fault", async () => {
    throw new Error("own fault");
  });
  app.register(httpApi({ operations }), prefix === undefined ? {} : { prefix });
  return app;
}

test("the host keeps its parsers, its errors and its 404", async () => {
  for (const prefix of [undefined, "/flows", "/deep/er"]) {
    const app = host(prefix);
    const own = await app.inject({ method: "POST", url: "/own", payload: { a: 1 } });
    assert.deepEqual(own.json(), { own: { a: 1 } });
    const fault = await app.inject({ url: "/own/fault" });
    assert.deepEqual([fault.statusCode, fault.json().message], [500, "own fault"]);
    const missing = await app.inject({ url: "/nope" });
    assert.equal(missing.statusCode, 404);
    assert.match(String(missing.headers["content-type"]), /^application\/json/);
    const poisoned = await app.inject({
      method: "POST",
      url: "/own",
      headers: { "content-type": "application/json" },
      payload: '{"__proto__":1}',
    });
    assert.equal(poisoned.statusCode, 400);
    await app.close();
  }
});

test("the API answers under its prefix as it does alone", async () => {
  for (const prefix of ["", "/flows", "/deep/er"]) {
    const app = host(prefix === "" ? undefined : prefix);
    const started = await app.inject({ method: "POST", url: `${prefix}/v1/workflows/w/instances`, payload: { input: 1 } });
    assert.deepEqual([started.statusCode, started.headers.location], [201, `${prefix}/v1/instances/a`]);
    const fault = await app.inject({ url: `${prefix}/v1/workflows/w` });
    assert.deepEqual([fault.statusCode, fault.json().code], [500, "INTERNAL"]);
    for (const path of ["/v1", "/v1/nope", "/v1/instances/a/b/c"]) {
      const missing = await app.inject({ url: prefix + path });
      assert.deepEqual([missing.statusCode, missing.json().code], [404, "ROUTE_NOT_FOUND"], path);
    }
    const method = await app.inject({ method: "DELETE", url: `${prefix}/v1/workflows` });
    assert.deepEqual([method.statusCode, method.headers.allow], [405, "GET"]);
    const malformed = await app.inject({
      method: "POST",
      url: `${prefix}/v1/workflows/w/instances`,
      headers: { "content-type": "application/json" },
      payload: "{",
    });
    assert.equal(malformed.json().code, "MALFORMED_REQUEST");
    assert.deepEqual((await app.inject({ url: `${prefix}/health/live` })).json(), { status: "live" });
    await app.close();
  }
});

test("under a prefix of its own everything that is unknown gets the API's answer", async () => {
  const app = host("/flows");
  const missing = await app.inject({ method: "POST", url: "/flows/nope", headers: { "content-type": "application/json" }, payload: "{" });
  assert.deepEqual([missing.statusCode, missing.json().code], [404, "ROUTE_NOT_FOUND"]);
  await app.close();
});

test("two of them live side by side", async () => {
  const app = Fastify();
  app.register(httpApi({ operations }), { prefix: "/a" });
  app.register(httpApi({ operations }), { prefix: "/b" });
  for (const prefix of ["/a", "/b"]) assert.equal((await app.inject({ url: `${prefix}/health/live` })).statusCode, 200);
  await app.close();
});
