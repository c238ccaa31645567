import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, type RateLimitOptions, workflow } from "@wovyr/sdk";
import { Gate, type TestEnvironment } from "@wovyr/testing";
import { inCase } from "./case.ts";

/** A workflow of many calls of one activity, which tells when each began. */
function rated(rateLimit: RateLimitOptions<string>) {
  const began: { readonly id: string; readonly at: number }[] = [];
  let env: TestEnvironment | undefined;
  const work = activity("work", { rateLimit }, async (id: string) => {
    began.push({ id, at: env?.now().getTime() ?? 0 });
    return id;
  });
  const worker = workflow("worker", async function* (ids: string[]) {
    return yield* all(ids.map((id) => work(id)));
  });
  const watch = (watched: TestEnvironment) => {
    env = watched;
  };
  return { began, worker, watch };
}

const ids = (count: number, prefix = "") => Array.from({ length: count }, (_, at) => `${prefix}${at}`);

/** The most that began within any period. */
function most(began: readonly { readonly at: number }[], per: number): number {
  return Math.max(...began.map(({ at }) => began.filter((other) => other.at >= at && other.at < at + per).length));
}

test("no more attempts begin within any period than may; the others wait, in order", async () => {
  const { began, worker, watch } = rated({ limit: 5, per: "10s" });
  await inCase({ workflows: [worker] }, async (env) => {
    watch(env);
    const from = env.now().getTime();
    const run = await env.start(worker, ids(23));
    assert.deepEqual(await run.result(), ids(23));
    assert.equal(most(began, 10_000), 5);
    assert.deepEqual(
      began.map(({ id }) => id),
      ids(23),
    );
    const took = env.now().getTime() - from;
    assert.ok(took >= 40_000 && took <= 42_000, `four periods and little more: ${took}`);
  });
});

test("each key has a rate of its own", async () => {
  const { began, worker, watch } = rated({ limit: 1, per: "1m", key: (id) => id.slice(0, 1) });
  await inCase({ workflows: [worker] }, async (env) => {
    watch(env);
    const run = await env.start(worker, ["a1", "a2", "b1", "c1"]);
    await run.result();
    const from = began[0]?.at ?? 0;
    assert.deepEqual(
      began.filter(({ at }) => at === from).map(({ id }) => id),
      ["a1", "b1", "c1"],
    );
    assert.ok((began.at(-1)?.at ?? 0) - from >= 60_000);
  });
});

test("a rate outlives the process", async () => {
  const { began, worker, watch } = rated({ limit: 2, per: "1h" });
  await inCase({ workflows: [worker] }, async (env) => {
    watch(env);
    const run = await env.start(worker, ids(3));
    await env.until(() => began.length === 2);
    env.crash();
    await env.restart();
    await env.advance("50m");
    assert.equal(began.length, 2);
    await run.result();
    assert.equal(most(began, 3_600_000), 2);
  });
});

test("tokens are not saved up while there is no place: what begins later begins at the rate", async () => {
  const gate = new Gate<string, string>();
  const began: number[] = [];
  const blocker = activity("blocker", gate.body);
  const work = activity("work", { rateLimit: { limit: 10, per: "1m" } }, async () => void began.push(clock()));
  let clock = () => 0;
  const worker = workflow("all", async function* () {
    yield* all([blocker("b"), ...ids(40).map(() => work())]);
  });
  await inCase({ workflows: [worker], limits: { activities: 1 } }, async (env) => {
    clock = () => env.now().getTime();
    const run = await env.start(worker);
    await gate.arrived("b");
    await env.advance("10m");
    assert.equal(began.length, 0);
    gate.open("b", "");
    await run.result();
    assert.equal(
      most(
        began.map((at) => ({ at })),
        60_000,
      ),
      10,
    );
  });
});

test("a tenant's rate holds over all its activities", async () => {
  const began: number[] = [];
  let clock = () => 0;
  const note = async () => void began.push(clock());
  const [a, b] = [activity("a", note), activity("b", note)];
  const worker = workflow("worker", async function* () {
    yield* all([a(), b(), a(), b(), a()]);
  });
  await inCase({ workflows: [worker], tenantLimits: { rateLimit: { limit: 2, per: "1m" } } }, async (env) => {
    clock = () => env.now().getTime();
    const run = await env.start(worker);
    await run.result();
    assert.equal(
      most(
        began.map((at) => ({ at })),
        60_000,
      ),
      2,
    );
  });
});
