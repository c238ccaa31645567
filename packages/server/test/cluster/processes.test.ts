import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ClusterDescription } from "@wovyr/sdk/client";
import { createClient, type Handle } from "@wovyr/sdk/client";
import { cutSessions } from "@wovyr/testing";
import { shardOf } from "../../src/engine/shard-of.ts";
import { readiness } from "../recovery/api.ts";
import { endOfCase, type Ledger } from "../recovery/checks.ts";
import { openGate } from "../recovery/gate.ts";
import { type Ground, ground } from "../recovery/ground.ts";
import type { Host } from "../recovery/host.ts";
import { patientClient } from "../recovery/load.ts";
import { executions } from "../recovery/record.ts";
import { seeded } from "../recovery/seeded.ts";
import { until, within } from "../recovery/until.ts";
import { Go, gatekeeper, listener } from "../recovery/workflows.ts";
import { balancedClient, balancedLoad } from "./balancer.ts";

type Cluster = Ground & { readonly hosts: readonly Host[]; readonly urls: readonly string[] };

/** So many orchestrators, as processes over one Postgres, that share the work evenly. */
async function cluster(context: TestContext, count: number, lease = 3_000): Promise<Cluster> {
  const place = await ground(context, "postgres");
  const hosts: Host[] = [];
  const urls: string[] = [];
  // The first makes the tables.
  for (let index = 0; index < count; index += 1) {
    const host = place.host({ lease });
    hosts.push(host);
    urls.push(await host.url);
  }
  await evenly(urls);
  return { ...place, hosts, urls };
}

const described = (url: string): Promise<ClusterDescription> => createClient({ url, retry: { maxAttempts: 1 } }).cluster();

/** Waits until the nodes behind these URLs, and no others, share all shards. */
async function evenly(urls: readonly string[], limit = 20_000): Promise<void> {
  await until(
    "the shards are spread",
    async () => {
      const seen = await Promise.all(urls.map((url) => described(url).catch(() => undefined)));
      return seen.every(
        (cluster) =>
          cluster !== undefined &&
          cluster.nodes.length === urls.length &&
          cluster.unowned.length === 0 &&
          cluster.nodes.every(({ shards }) => Math.abs(shards.length - cluster.shards / urls.length) < 1),
      );
    },
    limit,
  );
}

/** Ids that belong to the node behind a URL. */
async function idsOf(url: string, count: number, prefix: string): Promise<string[]> {
  const { nodes, shards } = await described(url);
  const own = new Set(nodes.find((node) => node.url === url)?.shards);
  const ids: string[] = [];
  for (let n = 0; ids.length < count; n += 1) if (own.has(shardOf("default", `${prefix}-${n}`, shards))) ids.push(`${prefix}-${n}`);
  return ids;
}

/** Every run that callers began has ended as it should, once. */
function checkLoad({ runs, turns }: Ledger, started: number): void {
  const begun = new Set(
    [...turns.values()].flatMap(
      ([first]) => first?.events.flatMap((fact) => (fact.type === "InstanceStarted" && fact.parent === undefined ? [fact.id] : [])) ?? [],
    ),
  );
  assert.equal(begun.size, started, "a run per key");
  for (const { run, status } of runs) {
    assert.equal(status, "Completed");
    const closings = (turns.get(run) ?? []).flatMap(({ events }) => events).filter(({ type }) => type === "InstanceCompleted");
    assert.equal(closings.length, 1);
  }
}

/** Follows a run, and remembers the numbers of the events that came. */
function follow(handle: Handle<unknown>): { readonly seen: number[]; readonly ended: Promise<void> } {
  const seen: number[] = [];
  const ended = (async () => {
    for await (const { seq } of handle.stream()) seen.push(seq);
  })();
  ended.catch(() => {});
  return { seen, ended };
}

const consecutive = (seen: readonly number[]) => seen.every((seq, index) => seq === index + 1);

test("H055 H115 results and streams at another node go on when the owner is killed: no gap, no repetition", async (context) => {
  const place = await cluster(context, 3);
  const [first, second, third] = place.urls as [string, string, string];
  const ids = await idsOf(first, 4, "followed");
  const asked = patientClient(second);
  const handles: Handle<string>[] = [];
  for (const id of ids) handles.push(await asked.start(gatekeeper, "open", { id }));
  const streams = handles.map(follow);
  const results = Promise.all(handles.map((handle) => handle.result({ timeout: "60s" })));
  await until("all are followed", () => streams.every(({ seen }) => seen.length > 0));
  const [host] = place.hosts as [Host];
  host.kill("SIGKILL");
  await host.ended;
  openGate(place.directory, "open");
  assert.deepEqual(
    await within("the results", 20_000, results),
    ids.map(() => "open"),
  );
  await within("the streams' ends", 10_000, Promise.all(streams.map(({ ended }) => ended)));
  for (const { seen } of streams) assert.ok(consecutive(seen), String(seen));
  await evenly([second, third]);
  for (const survivor of place.hosts.slice(1)) {
    survivor.kill("SIGTERM");
    assert.deepEqual(await survivor.ended, { code: 0, signal: null });
  }
  await endOfCase(place);
});

test("what is said to a run whose owner has just been killed is kept for the next one", async (context) => {
  const place = await cluster(context, 2, 2_000);
  const [first, second] = place.urls as [string, string];
  const [said, started] = (await idsOf(first, 2, "orphan")) as [string, string];
  const client = createClient({ url: second, retry: { maxAttempts: 1 } });
  const handle = await client.start(listener, undefined, { id: said });
  const [host, other] = place.hosts as [Host, Host];
  host.kill("SIGKILL");
  await host.ended;
  // One try each: they are answered although nobody owns the runs.
  await handle.send(Go, { text: "kept" }, { idempotencyKey: "once" });
  await handle.send(Go, { text: "kept" }, { idempotencyKey: "once" });
  const late = await client.start(listener, undefined, { id: started });
  await late.send(Go, { text: "begun without an owner" });
  const next = patientClient(second);
  assert.equal(await next.handle(listener, said).result({ timeout: "20s" }), "kept");
  assert.equal(await next.handle(listener, started).result({ timeout: "20s" }), "begun without an owner");
  const history = [];
  for await (const { type } of next.handle(listener, said).history()) history.push(type);
  assert.equal(history.filter((type) => type === "EventReceived").length, 1);
  other.kill("SIGTERM");
  await other.ended;
  await endOfCase(place);
});

test("under load by way of random nodes, one is killed, one is frozen beyond its lease, one is drained: nothing is lost or doubled", async (context) => {
  const place = await cluster(context, 3, 2_000);
  const random = seeded("random nodes");
  let urls: readonly string[] = place.urls;
  const load = balancedLoad(
    balancedClient(() => urls, random),
    12,
  );
  const more = (count: number) => {
    const until_ = load.completed + count;
    return until(`${count} more runs have completed`, () => load.completed >= until_, 30_000);
  };
  const [first, second, third] = place.hosts as [Host, Host, Host];
  await more(100);
  first.kill("SIGKILL");
  await more(60);
  const fourth = place.host({ lease: 2_000 });
  urls = [...place.urls.slice(1), await fourth.url];
  await evenly(urls);
  await more(60);
  // The balancer turns away from one that does not answer; who waits there goes on waiting.
  second.kill("SIGSTOP");
  urls = [place.urls[2] as string, await fourth.url];
  await until("its shards are taken over", async () => (await described(place.urls[2] as string)).nodes.length === 2, 15_000);
  await more(60);
  second.kill("SIGCONT");
  urls = [...place.urls.slice(1), await fourth.url];
  await evenly(urls);
  await more(60);
  third.kill("SIGTERM");
  assert.deepEqual(await third.ended, { code: 0, signal: null });
  urls = [place.urls[1] as string, await fourth.url];
  await evenly(urls);
  await more(60);
  const started = await within("the end of every run", 40_000, load.stop());
  for (const host of [second, fourth]) host.kill("SIGTERM");
  for (const host of [second, fourth]) assert.deepEqual(await host.ended, { code: 0, signal: null });
  checkLoad(await endOfCase(place), started);
  console.log(`${started} runs by way of random nodes, the slowest in ${Math.round(load.slowest)} ms`);
});

test("H085 under load, all sessions of all nodes are cut again and again, those that listen among them", async (context) => {
  const place = await cluster(context, 2);
  const load = balancedLoad(
    balancedClient(() => place.urls, seeded("cuts")),
    8,
  );
  for (let cut = 0; cut < 10; cut += 1) {
    const before = load.completed;
    await until("more runs have completed", () => load.completed >= before + 15, 30_000);
    assert.ok(place.store.kind === "postgres");
    await cutSessions(place.store.url, { application: "wovyr" });
  }
  const started = await within("the end of every run", 40_000, load.stop());
  for (const url of place.urls) await until("it is ready", async () => (await readiness(url)) === 200);
  for (const host of place.hosts) host.kill("SIGTERM");
  for (const host of place.hosts) assert.deepEqual(await host.ended, { code: 0, signal: null });
  checkLoad(await endOfCase(place), started);
  assert.ok(executions(place.directory).length > 0);
});
