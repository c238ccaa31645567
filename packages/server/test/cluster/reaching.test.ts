import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, awaitEvent, child, event, query, Type, type WovyrError, workflow } from "@wovyr/sdk";
import { HttpPeers } from "../../src/http/peers.ts";
import { createOrchestrator, memoryStore, type Store, type StoreProvider } from "../../src/index.ts";
import { ownAddress } from "../../src/platform/own-address.ts";
import { nodes } from "./nodes.ts";

const Go = event("go", Type.Number());
const total = query("total", { output: Type.Number() });
const waiting = workflow("waiting", { events: [Go] }, async function* (_: undefined, ctx) {
  ctx.onQuery(total, () => 1);
  return yield* awaitEvent(Go);
});

function withoutHints(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = name === "hints" ? undefined : Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const misconfigured = (says: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApiError);
  assert.equal(error.code, "CLUSTER_MISCONFIGURED");
  assert.match(error.message, says);
  return true;
};

test("an address is that of the host that is listened on, or the machine's own", () => {
  assert.equal(ownAddress("10.0.0.4", 7420), "http://10.0.0.4:7420");
  assert.equal(ownAddress("127.0.0.1", 1), "http://127.0.0.1:1");
  assert.equal(ownAddress("fd00::1", 7420), "http://[fd00::1]:7420");
  for (const host of ["0.0.0.0", "::"]) assert.doesNotMatch(ownAddress(host, 7420), /0\.0\.0\.0|\[::\]/);
});

test("a node asks other machines with a secret only, and loopback addresses of its own machine only", () => {
  const without = new HttpPeers({ secret: undefined, host: "app-1" });
  const withOne = new HttpPeers({ secret: "the-secret-of-this-cluster", host: "app-1" });
  const node = (host: string) => `${host}:17:abc`;
  assert.throws(
    () => without.operations("default", { node: node("app-2"), url: "http://10.0.0.5:7420" }),
    misconfigured(/no `cluster\.secret`/),
  );
  assert.ok(withOne.operations("default", { node: node("app-2"), url: "http://10.0.0.5:7420" }));
  // Listening on 0.0.0.0 it tells an address that other machines reach.
  const own = ownAddress("0.0.0.0", 7420);
  assert.ok(without.operations("default", { node: node("app-1"), url: own }));
  assert.throws(
    () => without.operations("default", { node: node("app-1"), url: "http://10.0.0.5:7420" }),
    misconfigured(/no `cluster\.secret`/),
  );
  for (const url of ["http://127.0.0.1:7420", "http://localhost:7420", "http://[::1]:7420"]) {
    assert.ok(without.operations("default", { node: node("app-1"), url }));
    assert.throws(() => withOne.operations("default", { node: node("app-2"), url }), misconfigured(/`cluster\.url`/));
  }
  assert.throws(() => withOne.operations("default", { node: node("app-2"), url: undefined }), misconfigured(/has no address/));
});

test("options of the cluster that cannot be are refused", async () => {
  for (const cluster of [{ secret: "short" }, { secret: "with spaces in between it" }, { url: "no url" }, { url: "ftp://x" }, { urls: [] }])
    await assert.rejects(
      createOrchestrator({ workflows: [], store: memoryStore(), cluster: cluster as never }),
      (error: WovyrError) => error.code === "INVALID_OPTION",
      JSON.stringify(cluster),
    );
});

test("messages reach runs of a node that listens nowhere, and queries say what is missing", async (context) => {
  const store = memoryStore({ shared: true });
  const errors: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const place = await nodes(context, 1, [waiting], { store, log });
  const [one] = place.all;
  assert.ok(one !== undefined);
  const mute = await createOrchestrator({
    workflows: [waiting],
    store,
    turnTimeout: false,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  context.after(() => mute.close());
  const id = "of-the-mute";
  const handles = await Promise.all(Array.from({ length: 20 }, (_, n) => one.client.start(waiting, undefined, { id: `${id}-${n}` })));
  const asked = await Promise.allSettled(handles.map((handle) => handle.query(total)));
  const refused = asked.flatMap((end) => (end.status === "rejected" ? [end.reason as WovyrError] : []));
  assert.ok(refused.length > 0 && refused.length < handles.length);
  for (const error of refused) assert.ok(misconfigured(/has no address/)(error));
  await Promise.all(handles.map((handle, n) => handle.send(Go, n)));
  assert.deepEqual(await Promise.all(handles.map((handle) => handle.result({ timeout: "20s" }))), [...handles.keys()]);
  assert.deepEqual(errors, [], "one that has just come may listen yet");
});

test("GET /v1/cluster tells of all nodes from each of them, and readiness of one that can only send on", async (context) => {
  const { all } = await nodes(context, 3, [waiting]);
  for (const { client, url } of all) {
    const { group, nodes, shards, unowned, node } = await client.cluster();
    assert.deepEqual([group, shards, unowned], ["default", 256, []]);
    assert.deepEqual(nodes.map(({ url }) => url).sort(), all.map(({ url }) => url).sort());
    assert.equal(nodes.find((each) => each.node === node)?.url, url);
    assert.deepEqual([...new Set(nodes.flatMap((each) => each.shards))].length, 256);
    for (const { workflows, state, leaseUntil } of nodes) {
      assert.ok(workflows.includes("waiting@1"));
      assert.ok(!workflows.some((label) => label.startsWith("wovyr:")));
      assert.equal(state, "active");
      assert.ok(leaseUntil > new Date());
    }
    assert.equal((await fetch(`${url}/health/ready`)).status, 200);
  }
});

test("H084 without notifications all works as well, only slower from node to node", async (context) => {
  const leaf = workflow("leaf", async function* (n: number) {
    return n;
  });
  const root = workflow("root", async function* (id: string) {
    return yield* child(leaf, 7, { id });
  });
  const shared = memoryStore({ shared: true });
  const store: StoreProvider = { ...shared, open: async (options) => withoutHints(await shared.open(options)) };
  const { all, idOf } = await nodes(context, 2, [leaf, root], { store, lease: 3_000 });
  const [one, two] = all;
  assert.ok(one !== undefined && two !== undefined);
  assert.equal(await one.client.execute(root, await idOf(two, "leaf"), { id: await idOf(one, "root") }), 7);
});
