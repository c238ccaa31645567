/** Graphs over HTTP, and the same through the client on both sides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toMermaid } from "@wovyr/sdk/client";
import { staticGraph } from "../../src/index.ts";
import { approval, order } from "../http/orchestrated.ts";
import { seeded } from "../http/seeded.ts";
import { assertGraph, linesOf } from "./assert-graph.ts";

test("a handle gives the same graph in process and over HTTP", async (t) => {
  const { local, client } = await seeded(t);
  for (const id of ["completed", "failed", "terminated", "waiting", "retrying"]) {
    const here = await local.handle(id).graph();
    assertGraph(here);
    assert.equal(here.id, id);
    assert.deepEqual(await client.handle(id).graph(), here);
  }
  assert.deepEqual(linesOf(await client.handle("waiting").graph()), ["start approval Completed", "0 event approved Waiting", "start → 0"]);
  const retrying = (await client.handle("retrying").graph()).nodes.at(-1);
  assert.equal(retrying?.state, "Retrying");
  assert.ok(retrying?.attempts?.[0]?.nextAt instanceof Date);
});

test("the graph of a run comes as JSON or as text of Mermaid", async (t) => {
  const { orchestrator, local } = await seeded(t);
  const graph = await local.handle("waiting").graph();
  const get = (query: string, accept?: string) =>
    orchestrator.http.inject({ url: `/v1/instances/waiting/graph${query}`, ...(accept !== undefined && { headers: { accept } }) });
  const json = await get("");
  assert.match(String(json.headers["content-type"]), /^application\/json/);
  assert.deepEqual(json.json(), JSON.parse(JSON.stringify(graph)));
  for (const answer of [
    await get("?format=mermaid"),
    await get("", "text/vnd.mermaid"),
    await get("?format=mermaid", "application/json"),
  ]) {
    assert.equal(answer.headers["content-type"], "text/vnd.mermaid; charset=utf-8");
    assert.equal(answer.body, toMermaid(graph));
  }
  assert.match(String((await get("?format=json", "text/vnd.mermaid")).headers["content-type"]), /^application\/json/);
  assert.deepEqual((await get(`?runId=${graph.runId}`)).json(), json.json());
  for (const [query, status, code] of [
    ["?format=svg", 422, "SCHEMA_VIOLATION"],
    ["?runId=another", 404, "INSTANCE_NOT_FOUND"],
    ["?colour=red", 422, "SCHEMA_VIOLATION"],
  ] as const) {
    const refused = await get(query);
    assert.deepEqual([refused.statusCode, refused.json().code], [status, code], query);
  }
  await assert.rejects(local.handle("nobody").graph(), { code: "INSTANCE_NOT_FOUND" });
});

test("a workflow's page has the graph of each of its versions", async (t) => {
  const { orchestrator } = await seeded(t);
  const of = async (name: string) => (await orchestrator.http.inject({ url: `/v1/workflows/${name}` })).json();
  assert.deepEqual((await of("approval")).graph, { "1": JSON.parse(JSON.stringify(staticGraph(approval))) });
  assert.deepEqual(Object.keys((await of("order")).graph), [order.version]);
  const list = (await orchestrator.http.inject({ url: "/v1/workflows" })).json();
  assert.ok(list.items.every((item: object) => !("graph" in item)));
});
