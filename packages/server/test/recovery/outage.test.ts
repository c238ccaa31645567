import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@wovyr/sdk/client";
import { type TcpProxy, tcpProxy } from "@wovyr/testing";
import { createOrchestrator, type Orchestrator, postgresStore } from "../../src/index.ts";
import { call, readiness } from "./api.ts";
import { endOfCase } from "./checks.ts";
import { type Ground, ground } from "./ground.ts";
import { startLoad } from "./load.ts";
import { type LogLines, logLines } from "./log-lines.ts";
import { seeded } from "./seeded.ts";
import { until, within } from "./until.ts";
import { bystander, sleeper, workflows } from "./workflows.ts";

type Stage = {
  readonly place: Ground;
  readonly proxy: TcpProxy;
  readonly log: LogLines;
  readonly orchestrator: Orchestrator;
  readonly url: string;
};

async function stage(context: TestContext, { down = false, lease = 10_000 } = {}): Promise<Stage> {
  const place = await ground(context, "postgres");
  process.env.WOVYR_TEST_RECORD = place.directory;
  if (place.store.kind !== "postgres") throw new Error("this needs Postgres");
  const proxy = await tcpProxy(place.store.url);
  context.after(() => proxy.close());
  if (down) await proxy.refuse();
  const log = logLines();
  const store = postgresStore(proxy.url(), { statementDeadline: 20_000 });
  const orchestrator = await createOrchestrator({ workflows, store, log: log.log, lease, turnTimeout: false, shutdownGrace: 1_000 });
  context.after(() => orchestrator.close());
  return { place, proxy, log, orchestrator, url: await orchestrator.listen({ port: 0 }) };
}

async function endsWell({ place, orchestrator }: Stage, started: number): Promise<void> {
  await orchestrator.close();
  const ledger = await endOfCase(place);
  assert.equal(ledger.runs.filter(({ id }) => /^load-\d+$/.test(id)).length, started, "a run per key");
  assert.ok(ledger.runs.every(({ status }) => status === "Completed"));
  const lost = [...ledger.turns.values()]
    .flatMap((turns) => turns.flatMap(({ events }) => events))
    .filter(({ type }) => type === "AttemptLost");
  assert.deepEqual(lost, [], "no process died, so no attempt was lost");
}

test("H085 H086 sessions that the database ends, again and again, cost nothing", async (context) => {
  const random = seeded("ended sessions");
  const it = await stage(context);
  const load = startLoad(it.url, 15);
  await it.place.sql(async (driver) => {
    for (let cut = 0; cut < 12; cut += 1) {
      await pause(random.whole(200));
      await driver.query(
        "read",
        "select count(pg_terminate_backend(pid))::integer from pg_stat_activity where datname = current_database() and application_name = 'wovyr' and pid <> pg_backend_pid()",
        [],
      );
    }
  });
  await endsWell(it, await within("the end of every run", 40_000, load.stop()));
});

test("H028 a connection that is lost between a commit and its answer doubles nothing and loses nothing", async (context) => {
  const random = seeded("lost answers");
  const it = await stage(context);
  const load = startLoad(it.url, 15);
  for (let cut = 0; cut < 25; cut += 1) {
    await pause(random.whole(120));
    if (random.fraction() < 0.7) it.proxy.loseAnswers();
    else it.proxy.reset();
  }
  await endsWell(it, await within("the end of every run", 40_000, load.stop()));
});

test("H087 a network that swallows everything for three seconds delays, and loses nothing", async (context) => {
  const it = await stage(context);
  const load = startLoad(it.url, 10);
  await until("work is under way", () => load.completed > 10);
  it.proxy.blackhole();
  await pause(3_000);
  it.proxy.flow();
  const before = load.completed;
  await until("it goes on", () => load.completed > before + 10);
  await endsWell(it, await within("the end of every run", 40_000, load.stop()));
});

test("H004 H090 while the database is away calls are refused clearly, and when it is back everything goes on", async (context) => {
  const it = await stage(context);
  const load = startLoad(it.url, 10);
  const sleepers = await Promise.all([600, 700].map((ms) => it.orchestrator.client.start(sleeper, ms, { id: `s-${ms}` })));
  await until("work is under way", () => load.completed > 5);
  const down = performance.now();
  await it.proxy.refuse();
  await until("it is not ready", async () => (await readiness(it.url)) === 503);
  const refused = await call(it.url, "POST", "/v1/workflows/chain/instances", { input: 1 }, "refused-1");
  assert.deepEqual([refused.status, refused.body.code], [503, "STORE_UNAVAILABLE"]);
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  assert.ok(it.log.has("error the store cannot be reached"), it.log.lines.join("\n"));
  const read = await call(it.url, "GET", "/v1/instances/nobody");
  assert.deepEqual([read.status, read.body.code], [503, "STORE_UNAVAILABLE"]);
  await pause(Math.max(0, 1_500 - (performance.now() - down)));
  await it.proxy.accept();
  await until("it is ready again", async () => (await readiness(it.url)) === 200);
  assert.ok(it.log.has("the store is back"));
  assert.ok(it.log.count("the store cannot be reached") <= 2, "the log is not flooded");
  await within("the sleepers", 10_000, Promise.all(sleepers.map((handle) => handle.result())));
  const before = load.completed;
  await until("the load goes on", () => load.completed > before + 5);
  await endsWell(it, await within("the end of every run", 40_000, load.stop()));
});

test("H090 an idle orchestrator notices that its database is away, and that it is back", async (context) => {
  const it = await stage(context, { lease: 3_000 });
  assert.equal(await readiness(it.url), 200);
  await it.proxy.refuse();
  await until("it is not ready", async () => (await readiness(it.url)) === 503, 5_000);
  const refused = await call(it.url, "POST", "/v1/workflows/chain/instances", { input: 1 }, "refused-1");
  assert.deepEqual([refused.status, refused.body.code], [503, "STORE_UNAVAILABLE"]);
  // Longer than its lease.
  await pause(3_500);
  assert.equal((await call(it.url, "POST", "/v1/workflows/chain/instances", { input: 1 }, "refused-2")).body.code, "STORE_UNAVAILABLE");
  await it.proxy.accept();
  await until("it is ready again", async () => (await readiness(it.url)) === 200, 10_000);
  assert.equal(await it.orchestrator.client.execute(bystander, 5), 5);
  await endsWell(it, 0);
});

test("H090 an orchestrator that starts without its database listens, refuses, and works once it is there", async (context) => {
  const it = await stage(context, { down: true });
  assert.equal(it.orchestrator.ready, false);
  assert.ok(it.log.has("the store cannot be reached; the orchestrator waits for it"));
  assert.equal(await readiness(it.url), 503);
  const refused = await call(it.url, "POST", "/v1/workflows/chain/instances", { input: 1 }, "refused");
  assert.deepEqual([refused.status, refused.body.code], [503, "STORE_UNAVAILABLE"]);
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  const patient = createClient({ url: it.url, retry: { maxAttempts: 1_000, maxDuration: 30_000, maxDelay: 200 } }).execute(bystander, 7);
  await it.proxy.accept();
  await until("it is ready", () => it.orchestrator.ready, 15_000);
  assert.equal(await patient, 7);
  assert.ok(it.log.has("info the store is there"));
  await endsWell(it, 0);
});

for (const trouble of ["refuse", "blackhole"] as const)
  test(`H087 closing while the database is away (${trouble}) ends in time and loses nothing`, async (context) => {
    const place = await ground(context, "postgres");
    if (place.store.kind !== "postgres") throw new Error("this needs Postgres");
    const proxy = await tcpProxy(place.store.url);
    context.after(() => proxy.close());
    const host = place.host({ store: { kind: "postgres", url: proxy.url() }, shutdownGrace: 1_000 });
    const url = await host.url;
    const client = createClient({ url, retry: { maxAttempts: 1 } });
    const handles = await Promise.all([0, 1, 2].map((n) => client.start(bystander, 300, { id: `b-${n}` })));
    const waiting = Promise.allSettled(handles.map((handle) => handle.result()));
    await proxy[trouble]();
    await pause(400);
    const asked = performance.now();
    host.kill("SIGTERM");
    assert.deepEqual(await within("the end of the process", 20_000, host.ended), { code: 0, signal: null });
    assert.ok(performance.now() - asked < 4_000, `it took ${Math.round(performance.now() - asked)} ms\n${host.log()}`);
    await waiting;
    proxy.reset();
    const next = place.host();
    const again = createClient({ url: await next.url });
    for (const n of [0, 1, 2]) assert.equal(await again.handle(bystander, `b-${n}`).result({ timeout: "20s" }), 300);
    next.kill("SIGTERM");
    await next.ended;
    await endOfCase(place);
  });
