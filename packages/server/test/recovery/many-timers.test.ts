import assert from "node:assert/strict";
import { test } from "node:test";
import { createOrchestrator } from "../../src/index.ts";
import { call, readiness } from "./api.ts";
import { endOfCase } from "./checks.ts";
import { ground } from "./ground.ts";
import { logLines } from "./log-lines.ts";
import { letTimePass } from "./overdue.ts";
import { until } from "./until.ts";
import { timer, workflows } from "./workflows.ts";

const count = 12_000;
const batch = 1_000;
const megabyte = 1_048_576;

test(`H119 ${count} timers that are due at a restart fire once each, while the API answers`, async (context) => {
  const place = await ground(context, "postgres");
  const orchestrator = await createOrchestrator({ workflows, store: place.provider, log: logLines().log, turnTimeout: false });
  for (let first = 0; first < count; first += batch)
    await orchestrator.client.startBatch(
      timer,
      Array.from({ length: batch }, (_, n) => ({ input: 3_600_000, id: `t-${first + n}` })),
    );
  await orchestrator.close();
  await letTimePass(place, 2 * 3_600_000);
  const host = place.host();
  const url = await host.url;
  const began = performance.now();
  const waits: number[] = [];
  let highest = 0;
  await until(
    "every timer has fired",
    async () => {
      const asked = performance.now();
      const { status } = await call(url, "GET", `/v1/instances/t-${waits.length}`);
      waits.push(performance.now() - asked);
      assert.equal(status, 200);
      assert.equal((await call(url, "POST", "/v1/workflows/timer/instances", { input: 0, id: `fresh-${waits.length}` })).status, 201);
      highest = Math.max(highest, (await host.memory()).rss);
      const [row] = await place.sql((driver) =>
        driver.query("read", "select count(*)::integer from wovyr.timers where effect is not null", []),
      );
      return Number(row?.[0]) < 5;
    },
    60_000,
    100,
  );
  assert.equal(await readiness(url), 200);
  const slowest = Math.max(...waits);
  console.log(
    `${count} timers in ${Math.round(performance.now() - began)} ms, slowest answer ${Math.round(slowest)} ms, ${Math.round(highest / megabyte)} MiB`,
  );
  assert.ok(slowest < 5_000, `an answer took ${Math.round(slowest)} ms`);
  assert.ok(highest < 700 * megabyte, `${Math.round(highest / megabyte)} MiB`);
  host.kill("SIGTERM");
  assert.deepEqual(await host.ended, { code: 0, signal: null });
  const { runs, turns } = await endOfCase(place);
  assert.ok(runs.every(({ id, status }) => status === "Completed" || id.startsWith("fresh-")));
  const fired = [...turns.values()].map((all) => all.flatMap(({ events }) => events).filter(({ type }) => type === "TimerFired").length);
  assert.ok(fired.every((times) => times <= 1));
  assert.equal(runs.filter(({ id }) => id.startsWith("t-")).length, count);
});
