import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { ApiError } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { readiness } from "./api.ts";
import { endOfCase } from "./checks.ts";
import { openGate } from "./gate.ts";
import { type Ground, ground } from "./ground.ts";
import { patientClient } from "./load.ts";
import { executions } from "./record.ts";
import { until, within } from "./until.ts";
import { bystander, gatekeeper, timer } from "./workflows.ts";

/** The owners of all shards; "" for one that nobody owns. */
const owned = (place: Ground): Promise<string[]> =>
  place.sql(async (driver) =>
    (await driver.query("read", "select coalesce(owner, '') from wovyr.shards", [])).map(([owner]) => String(owner)),
  );

/** The ready nodes share the runs: asks one after the other until one of them answers. */
async function anyOf<T>(urls: readonly string[], ask: (client: Client) => Promise<T>): Promise<T> {
  const patience = performance.now() + 30_000;
  for (;;)
    for (const url of urls)
      try {
        return await ask(createClient({ url, retry: { maxAttempts: 1 } }));
      } catch (error) {
        if (performance.now() > patience || (error as ApiError).retryable !== true) throw error;
        await pause(50);
      }
}

test("H055 a second orchestrator takes its share, and all of it at once when the first is killed", async (context) => {
  const place = await ground(context, "postgres");
  const first = place.host({ lease: 30_000 });
  const client = patientClient(await first.url);
  const second = place.host({ lease: 30_000, prepared: true });
  const handles = await Promise.all([1, 2, 3].map((n) => client.start(gatekeeper, "open", { id: `g-${n}` })));
  await until("the activities run", () => executions(place.directory).length === 3);
  second.go();
  const url = await second.url;
  await until("the second has its share", async () => (await readiness(url)) === 200, 20_000);
  first.kill("SIGKILL");
  await first.ended;
  const killed = performance.now();
  await until("the second owns all", async () => (await owned(place)).every((owner) => owner.includes(`:${second.pid}:`)), 10_000);
  assert.ok(performance.now() - killed < 10_000, "it did not wait for the lease");
  openGate(place.directory, "open");
  const next = patientClient(url);
  for (const { id } of handles) assert.equal(await next.handle(gatekeeper, id).result({ timeout: "10s" }), "open");
  second.kill("SIGTERM");
  assert.deepEqual(await second.ended, { code: 0, signal: null });
  await endOfCase(place);
});

test("H055 a dead orchestrator on another machine is followed when its lease has run out, not before", async (context) => {
  const place = await ground(context, "postgres");
  const lease = 6_000;
  const first = place.host({ lease });
  const client = patientClient(await first.url);
  await client.start(timer, 1, { id: "t" });
  first.kill("SIGKILL");
  await first.ended;
  const left = await place.sql(async (driver) => {
    await driver.query("write", "update wovyr.nodes set node = 'elsewhere:1:x', lease_until = now() + interval '4 seconds'", []);
    await driver.query("write", "update wovyr.shards set owner = 'elsewhere:1:x'", []);
    return 4_000;
  });
  const from = performance.now();
  const second = place.host({ lease });
  const url = await second.url;
  await until("the second is ready", async () => (await readiness(url)) === 200, 15_000);
  assert.ok(performance.now() - from >= left, "it waited for the lease");
  assert.ok(performance.now() - from < left + 8_000, "it did not wait much longer");
  assert.equal(await patientClient(url).handle(timer, "t").result({ timeout: "10s" }), "awake");
  second.kill("SIGTERM");
  await second.ended;
  await endOfCase(place);
});

test("H044 H056 H059 an orchestrator that was frozen beyond its lease writes nothing when it thaws, and gets its share again", async (context) => {
  const place = await ground(context, "postgres");
  const lease = 3_000;
  const first = place.host({ lease });
  const firstUrl = await first.url;
  const second = place.host({ lease, prepared: true });
  const client = patientClient(firstUrl);
  const ids = Array.from({ length: 8 }, (_, n) => `g-${n}`);
  for (const id of ids) await client.start(gatekeeper, "open", { id });
  await until("the activities run", () => executions(place.directory).length === ids.length);
  second.go();
  const secondUrl = await second.url;
  await until("the second has its share", async () => (await readiness(secondUrl)) === 200, 15_000);
  // What it was about to do when it froze: activities that end, timers that fire, answers under way.
  const hasty = createClient({ url: firstUrl, retry: { maxAttempts: 1 } });
  const underWay = Array.from({ length: 30 }, (_, n) => hasty.start(bystander, 20 + n * 5, { id: `w-${n}`, idempotencyKey: `w-${n}` }));
  await Promise.any(underWay);
  first.kill("SIGSTOP");
  await until("the second owns all", async () => (await owned(place)).every((owner) => owner.includes(`:${second.pid}:`)), 15_000);
  await until(
    "the activities run again",
    () => executions(place.directory).filter(({ pid, name }) => pid === second.pid && name === "gated").length === 8,
  );
  openGate(place.directory, "open");
  first.kill("SIGCONT");
  const both = [secondUrl, firstUrl];
  const resultOf = (workflow: typeof gatekeeper, id: string) =>
    anyOf(both, (client) => client.handle(workflow, id).result({ timeout: "2s" }));
  for (const id of ids) assert.equal(await resultOf(gatekeeper, id), "open");
  await until("the first knows", () => first.log().includes("are not this node's any more"));
  await until("the first has its share", async () => new Set(await owned(place)).size === 2, 15_000);
  // Its callers turn to whoever owns their runs, with the same keys.
  const ends = Promise.allSettled(underWay);
  const results = Array.from({ length: 30 }, (_, n) =>
    anyOf(both, (client) => client.execute(bystander, 20 + n * 5, { id: `w-${n}`, idempotencyKey: `w-${n}` })),
  );
  assert.deepEqual(
    await within("the starts that were under way", 20_000, Promise.all(results)),
    Array.from({ length: 30 }, (_, n) => 20 + n * 5),
  );
  await ends;
  // And back: it took nothing stale with it.
  const held = ["h-1", "h-2", "h-3", "h-4"];
  await Promise.all(held.map((id) => anyOf(both, (client) => client.start(gatekeeper, "late", { id, idempotencyKey: id }))));
  await until("they run", () => executions(place.directory).filter(({ note }) => note === "late").length === held.length);
  second.kill("SIGKILL");
  await until("the first owns all", async () => (await owned(place)).every((owner) => owner.includes(`:${first.pid}:`)), 15_000);
  openGate(place.directory, "late");
  for (const id of held) assert.equal(await client.handle(gatekeeper, id).result({ timeout: "15s" }), "late");
  first.kill("SIGTERM");
  assert.deepEqual(await first.ended, { code: 0, signal: null });
  const ledger = await endOfCase(place);
  for (const { run, status } of ledger.runs) {
    assert.equal(status, "Completed");
    const closings = (ledger.turns.get(run) ?? []).flatMap(({ events }) => events).filter(({ type }) => type === "InstanceCompleted");
    assert.equal(closings.length, 1);
  }
});
