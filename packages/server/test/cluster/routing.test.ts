import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type ClientRequest, createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { awaitEvent, child, event, query, Type, update, type WovyrError, workflow } from "@wovyr/sdk";
import type { Handle } from "@wovyr/sdk/client";
import type { Beat } from "../../src/engine/ports/store.ts";
import { HttpPeers } from "../../src/http/peers.ts";
import { memoryStore, type StoreProvider } from "../../src/index.ts";
import { hostOfProcess } from "../../src/platform/process-name.ts";
import { until, within } from "../recovery/until.ts";
import { type Node, nodes } from "./nodes.ts";

const Go = event("go", Type.Number());
const Ping = event("ping");
const total = query("total", { output: Type.Number() });
const add = update("add", { input: Type.Number(), output: Type.Number() });

const adder = workflow(
  "adder",
  { events: [Go], input: Type.Number(), output: Type.Number(), variables: () => ({ sum: 0 }) },
  async function* (first, ctx) {
    ctx.variables.sum = first;
    ctx.onQuery(total, () => ctx.variables.sum);
    ctx.onUpdate(add, { handler: (more) => (ctx.variables.sum += more) });
    const last = yield* awaitEvent(Go);
    return ctx.variables.sum + last;
  },
);

const pinged = workflow("pinged", { triggers: [Ping] }, async function* () {
  return "pong";
});

const code = (wanted: string) => (error: unknown) => (error as WovyrError).code === wanted;

/** Both ways in: over HTTP and in process. */
const doors = ({ client, local }: Node) => [client, local];

test("any node answers for any run: starts, queries, updates, events, descriptions, results, streams", async (context) => {
  const { all, idOf } = await nodes(context, 3, [adder, pinged]);
  for (const owner of all)
    for (const asked of all)
      for (const [door, client] of doors(asked).entries()) {
        const id = await idOf(owner, `x-${all.indexOf(owner)}-${all.indexOf(asked)}-${door}`);
        const handle = await client.start(adder, 1, { id });
        assert.equal(await handle.query(total), 1);
        assert.equal(await handle.update(add, 2), 3);
        const description = await handle.describe();
        assert.deepEqual([description.status, description.awaitedEvents.map(({ name }) => name)], ["Waiting", ["go"]]);
        assert.ok(description.waitingAt.length > 0);
        const types: string[] = [];
        const followed = (async () => {
          for await (const { type } of handle.stream()) types.push(type);
        })();
        const result = handle.result({ timeout: "20s" });
        await handle.send(Go, 4, { idempotencyKey: "go" });
        await handle.send(Go, 4, { idempotencyKey: "go" });
        assert.equal(await result, 7);
        await within("the stream's end", 5_000, followed);
        assert.equal(types.at(-1), "InstanceCompleted");
        assert.equal(types.filter((type) => type === "EventReceived").length, 1);
      }
});

test("a start without an id stays on the node that is asked, and a repeated one finds it from anywhere", async (context) => {
  const { all } = await nodes(context, 3, [adder, pinged]);
  const [one, two] = all as [Node, Node];
  const forwarded = await forwardedDuring(async () => {
    for (let n = 0; n < 20; n += 1) await one.client.start(adder, n);
  });
  assert.equal(forwarded, 0);
  const first = await one.client.start(adder, 5, { idempotencyKey: "k" });
  const again = await two.client.start(adder, 5, { idempotencyKey: "k" });
  assert.equal(again.runId, first.runId);
  await assert.rejects(two.client.start(adder, 6, { idempotencyKey: "k" }), code("IDEMPOTENCY_CONFLICT"));
  const executed = two.client.execute(adder, 5, { idempotencyKey: "k" });
  await again.send(Go, 1);
  assert.equal(await executed, 6);
});

/** How many requests nodes of this process send to each other while something is done. */
async function forwardedDuring(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const heard = (message: unknown) => {
    if ((message as { readonly request: ClientRequest }).request.hasHeader("wovyr-forwarded")) count += 1;
  };
  subscribe("http.client.request.start", heard);
  try {
    await work();
  } finally {
    unsubscribe("http.client.request.start", heard);
  }
  return count;
}

test("a batch of starts goes to the owners of its ids, and each item is answered by itself", async (context) => {
  const { all, idOf } = await nodes(context, 3, [adder, pinged]);
  const ids = await Promise.all(all.map((node) => idOf(node, "batched")));
  const [one] = all as [Node];
  const starts = [...ids.map((id) => ({ input: 1, id })), { input: 2 }, { input: "no number" as never, id: "bad" }];
  const codes = async ({ startBatch }: Node["client"]) =>
    (await startBatch(adder, starts)).map((item) => (item.ok ? "started" : (item.error as WovyrError).code));
  assert.deepEqual(await codes(one.client), ["started", "started", "started", "started", "INVALID_INPUT"]);
  const taken = "INSTANCE_EXISTS";
  assert.deepEqual(await codes(one.local), [taken, taken, taken, "started", "INVALID_INPUT"]);
  for (const id of ids) assert.equal(await one.client.handle(adder, id).query(total), 1);
});

test("a publication reaches waiting runs of all nodes, and starts what it triggers once", async (context) => {
  const { all, idOf } = await nodes(context, 3, [adder, pinged]);
  const [one, two] = all as [Node, Node];
  const handles: Handle<number>[] = [];
  for (const [index, node] of all.entries()) handles.push(await node.client.start(adder, index, { id: await idOf(node, "waiting") }));
  const { delivered } = await two.client.publish(Go, 10);
  assert.equal(delivered, 3);
  assert.deepEqual(await Promise.all(handles.map((handle) => handle.result({ timeout: "10s" }))), [10, 11, 12]);
  const published = await one.client.publish(Ping, undefined, { idempotencyKey: "p" });
  const again = await two.client.publish(Ping, undefined, { idempotencyKey: "p" });
  assert.deepEqual(again.started, published.started);
  assert.equal(published.started.length, 1);
});

test("a request that another node has sent on is answered or refused, and never goes on", async (context) => {
  const { all, idOf } = await nodes(context, 2, [adder, pinged]);
  const [one, two] = all as [Node, Node];
  const id = await idOf(two);
  await two.client.start(adder, 1, { id });
  const headers = { "content-type": "application/json", "wovyr-forwarded": "1", "wovyr-tenant": "default" };
  const names = new Map(await Promise.all(all.map(async ({ url, local }) => [url, (await local.cluster()).node] as const)));
  const send = (url: string, path: string, node = names.get(url) ?? "") =>
    fetch(`${url}/v1/instances/${id}/${path}`, { method: "POST", body: "{}", headers: { ...headers, "wovyr-node": node } });
  const ask = (url: string) => send(url, "queries/total");
  const forwarded = await forwardedDuring(async () => {
    const refused = await ask(one.url);
    assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [503, "NOT_OWNER"]);
    assert.ok(refused.headers.has("retry-after"));
    for (const path of ["cancel", "wake", "pause", "events/go"]) assert.equal((await send(one.url, path)).status, 503, path);
    assert.equal((await ask(two.url)).status, 200);
    for (const node of ["", names.get(one.url)]) {
      const astray = await send(two.url, "queries/total", node);
      assert.deepEqual([astray.status, ((await astray.json()) as { code: string }).code], [421, "WRONG_NODE"]);
    }
  });
  assert.equal(forwarded, 0);
});

test("nodes that share a secret take each other's requests, and nobody else's", async (context) => {
  const { all, idOf } = await nodes(context, 2, [adder, pinged], {
    cluster: { secret: "the secret of this cluster".replaceAll(" ", "-") },
  });
  const [one, two] = all as [Node, Node];
  const id = await idOf(two);
  assert.equal(await (await one.client.start(adder, 1, { id })).query(total), 1);
  const { node } = await two.local.cluster();
  const ask = (secret: string) => {
    const asked: Promise<unknown> = new HttpPeers({ secret, host: hostOfProcess(node) })
      .operations("default", { node, url: two.url })
      .query(id, "total", {});
    return asked.catch((error: Error) => (error.cause as Error).message);
  };
  for (const secret of ["the-secret-of-this-clusteR", "x".repeat(1_000)])
    assert.match(String(await ask(secret)), /answers 403 CLUSTER_SECRET_REFUSED as node .* does not prove/);
  assert.equal(await ask("the-secret-of-this-cluster"), 1);
});

test("what a node sends to another holds for that node, call and body alone, and does not tell the secret", async (context) => {
  const secret = "the-secret-of-this-cluster";
  const { all, idOf } = await nodes(context, 2, [adder, pinged], { cluster: { secret } });
  const [one, two] = all as [Node, Node];
  const [id, node] = [await idOf(two), (await two.local.cluster()).node];
  const handle = await one.client.start(adder, 1, { id });
  let sent: IncomingHttpHeaders = {};
  let asked = "";
  const tap = createServer((request, response) => {
    asked = request.url ?? "";
    sent = request.headers;
    request.resume();
    response.end("{}");
  });
  await new Promise<void>((resolve) => tap.listen(0, "127.0.0.1", resolve));
  context.after(() => tap.close());
  const url = `http://127.0.0.1:${(tap.address() as AddressInfo).port}`;
  const peer = new HttpPeers({ secret, host: hostOfProcess(node) }).operations("default", { node, url });
  await assert.rejects(peer.sendEvent(id, "go", 5, { idempotencyKey: "five" }), code("UNREACHABLE"));
  assert.doesNotMatch(JSON.stringify(sent), new RegExp(secret));
  const again = async (at: Node, path: string, body: string, headers: Record<string, string> = {}) => {
    const said = Object.entries({ ...sent, ...headers }).filter(
      ([name, value]) => value !== undefined && !/^(host|connection|content-length)$/.test(name),
    );
    const answer = await fetch(at.url + path, { method: "POST", body, headers: Object.fromEntries(said) as Record<string, string> });
    return [answer.status, ((await answer.json().catch(() => ({}))) as { code?: string }).code];
  };
  const body = JSON.stringify({ payload: 5 });
  const refused = [403, "CLUSTER_SECRET_REFUSED"];
  assert.deepEqual(await again(two, asked, JSON.stringify({ payload: 6 })), refused);
  assert.deepEqual(await again(two, asked.replace("events/go", "cancel"), body), refused);
  for (const header of ["wovyr-nonce", "wovyr-tenant", "idempotency-key", "wovyr-body-digest", "wovyr-proof"])
    assert.deepEqual(await again(two, asked, body, { [header]: "another" }), refused, header);
  assert.deepEqual(await again(one, asked, body), [421, "WRONG_NODE"]);
  assert.equal(await handle.query(total), 1);
  assert.equal((await again(two, asked, body))[0], 202);
  assert.equal(await handle.result({ timeout: "10s" }), 6);
});

test("where secrets differ, messages reach their runs through the store, and a query says what is wrong", async (context) => {
  const place = await nodes(context, 1, [adder, pinged], { cluster: { secret: "one-secret-of-a-cluster" } });
  const other = await place.open({ cluster: { secret: "another-secret-of-a-cluster" } });
  const [one] = place.all as [Node];
  const id = await place.idOf(one);
  const handle = await other.client.start(adder, 1, { id });
  await handle.send(Go, 2);
  assert.equal(await handle.result({ timeout: "10s" }), 3);
  await assert.rejects(handle.query(total), (error: WovyrError) => {
    assert.equal(error.code, "OWNER_UNREACHABLE");
    assert.match(error.message, /cluster\.secret/);
    return true;
  });
});

/** Server-sent events of a run, as text, from one connection. */
async function events(url: string, id: string, signal: AbortSignal, lastEventId?: string) {
  const response = await fetch(`${url}/v1/instances/${id}/stream`, {
    signal,
    headers: { accept: "text/event-stream", ...(lastEventId !== undefined && { "last-event-id": lastEventId }) },
  });
  const ids: string[] = [];
  const body = response.body?.pipeThrough(new TextDecoderStream());
  const read = (async () => {
    for await (const text of body ?? []) for (const [, found = ""] of text.matchAll(/^id: (.*)$/gm)) ids.push(found);
  })();
  read.catch(() => {});
  return { status: response.status, ids, read };
}

test("H116 a stream is taken up at another node after the last event, and ids of other runs are refused there as well", async (context) => {
  const { all, idOf } = await nodes(context, 3, [adder, pinged]);
  const [one, two, three] = all as [Node, Node, Node];
  const id = await idOf(three);
  const other = await idOf(three, "other");
  const handle = await one.client.start(adder, 1, { id });
  const stranger = await one.client.start(adder, 1, { id: other });
  const first = new AbortController();
  const before = await events(one.url, id, first.signal);
  await until("events have come", () => before.ids.length >= 2);
  first.abort();
  await handle.send(Go, 1);
  await handle.result();
  const after = await events(two.url, id, AbortSignal.timeout(10_000), before.ids.at(-1));
  await after.read;
  const whole = await events(three.url, id, AbortSignal.timeout(10_000));
  await whole.read;
  assert.deepEqual([...before.ids, ...after.ids], whole.ids);
  for (const wrong of [`${stranger.runId}:1`, `${handle.runId}:99`, "nonsense", `${handle.runId}:-1`])
    assert.equal((await events(two.url, id, AbortSignal.timeout(10_000), wrong)).status, 400, wrong);
});

test("H115 streams and waits whose callers are gone leave no connection between the nodes, also when nothing happens", async (context) => {
  const { all, idOf } = await nodes(context, 2, [adder, pinged]);
  const [one, two] = all as [Node, Node];
  const id = await idOf(two);
  await two.client.start(adder, 1, { id });
  const connections = () => new Promise<number>((resolve) => two.orchestrator.http.server.getConnections((_, count) => resolve(count)));
  const callers = new AbortController();
  const { signal } = callers;
  const streams = Promise.all(Array.from({ length: 50 }, () => events(one.url, id, signal)));
  const waits = Array.from({ length: 50 }, () => fetch(`${one.url}/v1/instances/${id}/result?wait=60s`, { signal }).catch(() => undefined));
  await streams;
  await until("all of them have reached the owner", async () => (await connections()) >= 100);
  callers.abort();
  await Promise.all(waits);
  await until("they have gone from the owner", async () => (await connections()) <= 3);
});

test("what a run leaves for runs of another node reaches them at once, and not only when that node looks", async (context) => {
  const leaf = workflow("leaf", async function* (n: number) {
    return n;
  });
  const root = workflow("root", async function* (ids: readonly string[]) {
    for (const [n, id] of ids.entries()) yield* child(leaf, n, { id });
    return ids.length;
  });
  const { all, idOf } = await nodes(context, 2, [leaf, root]);
  const [one, two] = all as [Node, Node];
  const ids: string[] = [];
  for (let n = 0; n < 10; n += 1) ids.push(await idOf(two, `leaf-${n}`));
  const began = performance.now();
  assert.equal(await one.client.execute(root, ids, { id: await idOf(one, "root") }), 10);
  // A node looks by itself about once a second: it would take ten.
  assert.ok(performance.now() - began < 4_000, `${performance.now() - began} ms`);
});

/** A store whose users can be made to hear and say nothing about who lives, until `speak`. */
function muffled(provider: StoreProvider): StoreProvider & { silence(): void; speak(): void } {
  let silent = false;
  let speak = () => {};
  const spoken = new Promise<void>((resolve) => {
    speak = resolve;
  });
  return {
    ...provider,
    async open(options) {
      const store = await provider.open(options);
      return new Proxy(store, {
        get(target, name) {
          if (silent && name === "beat") return (beat: Beat) => spoken.then(() => target.beat(beat));
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
    silence() {
      silent = true;
    },
    speak() {
      silent = false;
      speak();
    },
  };
}

test("H061 a node whose lease has run out answers nothing from memory", async (context) => {
  const shared = memoryStore({ shared: true });
  const store = muffled(shared);
  context.after(() => store.speak());
  const place = await nodes(context, 1, [adder, pinged], { store: shared, lease: 1_500 });
  const stale = await place.open({ store });
  const [one] = place.all as [Node];
  const id = await place.idOf(stale);
  const handle = await stale.client.start(adder, 1, { id });
  assert.equal(await handle.query(total), 1);
  store.silence();
  await until("the other node has taken over", async () => (await one.local.cluster()).nodes.length === 1, 10_000);
  const next = one.client.handle(adder, id);
  const { node } = await stale.local.cluster();
  assert.equal(await next.update(add, 5), 6);
  const asked = await fetch(`${stale.url}/v1/instances/${id}/queries/total`, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json", "wovyr-forwarded": "1", "wovyr-tenant": "default", "wovyr-node": node },
  });
  assert.deepEqual([asked.status, ((await asked.json()) as { code: string }).code], [503, "NOT_OWNER"]);
  await assert.rejects(handle.query(total), (error: WovyrError) => error.code === "OWNER_UNREACHABLE");
  // What can wait for the owner does.
  await handle.send(Go, 4);
  assert.equal(await next.result({ timeout: "10s" }), 10);
  assert.equal(await handle.result({ timeout: "10s" }), 10);
});
