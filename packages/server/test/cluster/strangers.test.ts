import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { ApiError, awaitEvent, event, query, Type, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { until } from "../recovery/until.ts";
import { nodes } from "./nodes.ts";

const Go = event("go", Type.Number());
const total = query("total", { output: Type.Number() });
const waiting = workflow("waiting", { events: [Go] }, async function* (_: undefined, ctx) {
  ctx.onQuery(total, () => 1);
  return yield* awaitEvent(Go);
});
const quick = workflow("quick", async function* (n: number) {
  return n;
});
const secret = "the-secret-of-this-cluster";

async function stranger(context: TestContext, status: number, body: string): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Where somebody listens, and never answers. */
async function silence(context: TestContext): Promise<string> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Astray = { readonly secret?: string; readonly level?: "warn" | "error" };

/** What is logged when it is asked of runs of a node that says of another address that it is its own: one line, at `level`. */
async function askedAstray(context: TestContext, url: string, { level = "error", ...cluster }: Astray): Promise<string[]> {
  const store = memoryStore({ shared: true });
  const lines: string[] = [];
  const told = (at: Astray["level"]) => (message: string) => {
    if (message.includes(url)) lines.push(`${at} ${message}`);
  };
  const log = { debug() {}, info() {}, warn: told("warn"), error: told("error") };
  const place = await nodes(context, 1, [waiting], { store, log, cluster });
  const [one] = place.all;
  assert.ok(one !== undefined);
  const lost = await createOrchestrator({ workflows: [waiting], store, turnTimeout: false, cluster: { ...cluster, url } });
  context.after(() => lost.close());
  await until("both have shards", async () => (await one.local.cluster()).nodes.every(({ shards }) => shards.length === 128));
  const handles = await Promise.all(Array.from({ length: 16 }, (_, n) => one.client.start(waiting, undefined, { id: `astray-${n}` })));
  const { nodes: members } = await one.local.cluster();
  const { node } = await lost.client.cluster();
  assert.equal(members.find((member) => member.node === node)?.url, url);
  const asked = await Promise.allSettled(handles.map((handle) => handle.query(total)));
  const refused = asked.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  assert.ok(refused.length > 0 && refused.length < handles.length);
  for (const error of refused) {
    assert.ok(error instanceof ApiError && error.code === "OWNER_UNREACHABLE", String(error));
    assert.ok(error.message.includes(node) && error.message.includes(url), error.message);
  }
  await Promise.all(handles.map((handle, n) => handle.send(Go, n)));
  assert.deepEqual(await Promise.all(handles.map((handle) => handle.result({ timeout: "20s" }))), [...handles.keys()]);
  await until("it is logged", () => lines.length > 0);
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.ok(lines[0]?.startsWith(level) && lines[0].includes(`node ${node} `), lines[0]);
  return lines;
}

test("whoever listens at the address of a node and is not that node is not believed, and is told of once", async (context) => {
  const stranded = await Promise.all(
    [
      { status: 200, body: "{}", cluster: { secret } },
      { status: 202, body: "", cluster: {} },
      { status: 401, body: '{"error":"no"}', cluster: { secret } },
    ].map(async ({ status, body, cluster }) => askedAstray(context, await stranger(context, status, body), cluster)),
  );
  assert.deepEqual(
    stranded.map(([line]) => /it answers (\d+) and does not say which node it is/.exec(line ?? "")?.[1]),
    ["200", "202", "401"],
  );
});

test("a node of another cluster that has the same secret is not taken for the one that is meant", async (context) => {
  const asked = [{ secret }, {}].map(async (cluster) => {
    const { all } = await nodes(context, 1, [waiting], { cluster });
    const [other] = all;
    const [line] = await askedAstray(context, other?.url ?? "", cluster);
    assert.match(line ?? "", /it answers 421 WRONG_NODE as node /);
    for await (const run of other?.client.list() ?? []) assert.fail(`it has a run ${run.id}`);
  });
  await Promise.all(asked);
});

test("an address where nobody listens is told of once, with the node", async (context) => {
  const lines = await askedAstray(context, "http://127.0.0.1:9", { secret });
  assert.match(lines[0] ?? "", /ECONNREFUSED/);
});

test("a node that lives and gives no answer in time is told of as such, and not as one whose address is wrong", async (context) => {
  const [line] = await askedAstray(context, await silence(context), { secret, level: "warn" });
  assert.match(line ?? "", /gives no answer in time .* more to do than it manages/);
});

test("who waits for what belongs to a node that does not answer is told in time: results are recorded, updates need the owner", async (context) => {
  const store = memoryStore({ shared: true });
  const { all } = await nodes(context, 1, [waiting, quick], { store, cluster: { secret } });
  const [one] = all;
  assert.ok(one !== undefined);
  const url = await silence(context);
  const mute = await createOrchestrator({ workflows: [waiting, quick], store, turnTimeout: false, cluster: { secret, url } });
  context.after(() => mute.close());
  await until("both have shards", async () => (await one.local.cluster()).nodes.every(({ shards }) => shards.length === 128));
  const handles = await Promise.all(Array.from({ length: 8 }, (_, n) => mute.client.start(waiting, undefined, { id: `mute-${n}` })));
  await Promise.all(handles.map((handle, n) => handle.send(Go, n)));
  await Promise.all(handles.map((handle) => handle.result()));
  const asked = handles.map(({ id }) => one.client.handle(waiting, id).result({ timeout: "2s" }));
  assert.deepEqual(await Promise.all(asked), [...handles.keys()]);
  const post = async (path: string, body: object) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await fetch(`${one.url}/v1/${path}`, init)).json() as Promise<{ readonly output?: number; readonly code?: string }>;
  };
  const begun = handles.map((_, n) => post("workflows/quick/instances?wait=10s", { id: `quick-${n}`, input: n }));
  assert.deepEqual(
    (await Promise.all(begun)).map(({ output }) => output),
    [...handles.keys()],
  );
  // Without an id it is begun where it was asked for.
  const open = await mute.client.start(waiting);
  assert.equal((await post(`instances/${open.id}/updates/rename?wait=2s`, {})).code, "OWNER_UNREACHABLE");
});
