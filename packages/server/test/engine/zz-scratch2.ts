import { randomUUID, randomBytes } from "node:crypto";
import { activity, all, workflow, sleep, map, sideEffect, step, type Flow } from "@wovyr/sdk";
import { createTestEnvironment } from "@wovyr/testing";
const act = activity("act", async () => { await null; return [Date.now(), Math.random(), randomUUID(), new Date().getTime(), performance.now()].length; });
const calls: Record<string, () => unknown> = {
  now: () => Date.now(), date: () => new Date(), date5: () => new Date(5), dateFn: () => Date(), rand: () => Math.random(), uuid: () => randomUUID(), guuid: () => crypto.randomUUID(), bytes: () => randomBytes(3),
  grv: () => crypto.getRandomValues(new Uint8Array(2)), perf: () => performance.now(), to: () => setTimeout(() => {}, 1), im: () => setImmediate(() => {}), hr: () => process.hrtime(), hrb: () => process.hrtime.bigint(),
  tick: () => process.nextTick(() => {}), micro: () => queueMicrotask(() => {}), fetch: () => fetch("http://127.0.0.1:1").catch(() => {}), log: () => console.error("hello"), inst: () => new Date(0) instanceof Date && new Date(3).constructor === Date,
};
const flows = Object.entries(calls).map(([n, c]) => workflow(n, async function* () { yield* act(); await null; return String(c()); }));
const fine = workflow("fine", async function* (_: undefined, ctx) {
  ctx.log.info("x"); yield* all([act(), act()]); yield* sleep("1d");
  return [yield* sideEffect(() => Date.now() > 0), yield* step("s", async () => Math.random() < 2), ctx.now() instanceof Date, structuredClone(ctx.now()) instanceof Date];
});
const branch = workflow("branch", async function* () { yield* sleep(1); return yield* all([async function* () { yield* sleep(1); return Math.random(); }]); });
const mapper = workflow("mapper", async function* () { return yield* map([1], () => sleep(Math.random())); });
for (const mode of ["error", "warn"] as const) {
await using env = await createTestEnvironment({ workflows: [...flows, fine, branch, mapper], determinismGuard: mode });
for (const f of [...flows, fine, branch, mapper]) {
  try { console.log(f.name, "=>", await env.execute(f as typeof fine)); } catch (e) { console.log(f.name, "!!", (e as Error).message.slice(50), "|", ((e as Error).cause as {code?: string})?.code); }
}
for (const l of env.logs) console.log(l.level, l.message, JSON.stringify(l.data));
}
console.log(Date.name, Date.now.toString().slice(0, 40), new Date(3).constructor === Date);
