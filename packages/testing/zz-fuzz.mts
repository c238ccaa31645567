import { activity, all, awaitEvent, child, event, race, sideEffect, sleep, step, timeout, spawn, workflow, type Flow } from "@wovyr/sdk";
import { createTestEnvironment, replay } from "@wovyr/testing";
type Op = { k: string; n: string; s?: Op[][] };
let seed = Number(process.argv[2] ?? 1);
const rnd = () => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return seed / 0x7fffffff; };
const pick = <T>(xs: readonly T[]) => xs[Math.floor(rnd() * xs.length)]!;
const evs = ["e1", "e2"].map((n) => event(n));
const acts = ["a", "b", "c", "d"].map((n) => activity(n, { retry: { maxAttempts: 1 } }, async (x: number) => { if (n === "d" && x % 2) throw new Error("d"); return x; }));
const sub = workflow("sub", async function* (n: number) { yield* sleep("1s"); return n; });
const gen = (d: number): Op => { const k = pick(["act", "act", "act", "sleep", "event", "child", "side", ...(d > 0 ? ["all", "race", "timeout", "spawn", "try"] : [])]);
  return { k, n: pick(["0", "1", "2", "3"]), ...(["all", "race", "timeout", "spawn", "try"].includes(k) && { s: Array.from({ length: k === "all" || k === "race" ? 1 + Math.floor(rnd() * 3) : 1 }, () => Array.from({ length: 1 + Math.floor(rnd() * 2) }, () => gen(d - 1))) }) }; };
async function* exec(ops: Op[]): Flow<any> { let v: any = 0; for (const o of ops) {
  switch (o.k) {
    case "act": try { v = yield* acts[+o.n]!(Number(v) || +o.n); } catch (e: any) { if (e.code !== "ACTIVITY_FAILED") throw e; } break;
    case "sleep": yield* sleep(`${+o.n + 1}s`); break;
    case "event": yield* awaitEvent(evs[+o.n % 2]!); break;
    case "child": v = yield* child(sub, +o.n); break;
    case "side": v = yield* sideEffect(() => 3); break;
    case "all": v = (yield* all(o.s!.map((x) => () => exec(x)))).length; break;
    case "race": v = (yield* race(o.s!.map((x) => () => exec(x)))).winner; break;
    case "timeout": try { yield* timeout(exec(o.s![0]!), "2s"); } catch (e: any) { if (e.name !== "TimeoutError") throw e; } break;
    case "spawn": yield* spawn(exec(o.s![0]!)); break;
    case "try": try { yield* exec(o.s![0]!); } finally { yield* acts[0]!(7); } break;
  } } return v; }
const prog = (ops: Op[]) => workflow("prog", async function* () { return yield* exec(ops); });
let clean = 0, diverged = 0, nochange = 0, maxms = 0; const t0 = performance.now();
for (let i = 0; i < Number(process.argv[3] ?? 300); i++) {
  const ops = Array.from({ length: 2 + Math.floor(rnd() * 6) }, () => gen(2));
  await using env = await createTestEnvironment({ workflows: [prog(ops), sub], seed: i + 1 });
  const run = await env.start(prog(ops));
  for (let j = 0; j < 8; j++) { await env.advance(`${Math.floor(rnd() * 4)}s`); try { if (rnd() < 0.6) await run.send(pick(evs)); if (rnd() < 0.05) await run.cancel(); if (rnd() < 0.03) await run.terminate(); } catch {} }
  await env.settle();
  const h = await env.history(run.id);
  const same = await replay([prog(ops), sub], h, { runId: run.runId });
  if (!same.ok) { console.log("FALSE ALARM", i, same.text); process.exit(1); }
  for (let m = 0; m < 6; m++) {
    const c = structuredClone(ops); const at = Math.floor(rnd() * c.length);
    const kind = pick(["ins", "del", "rep", "swap"]);
    if (kind === "ins") c.splice(at, 0, gen(1)); else if (kind === "del") c.splice(at, 1); else if (kind === "rep") c[at] = gen(1); else c.reverse();
    const s0 = performance.now();
    const r = await replay([prog(c), sub], h, { runId: run.runId });
    maxms = Math.max(maxms, performance.now() - s0);
    const d = r.runs[0]!;
    if (d.problem) { console.log("PROBLEM", d.problem.message); process.exit(1); }
    if (!d.divergence) clean++; else { diverged++; if (!/^[+-]/m.test(d.divergence.diff)) { nochange++; if (process.argv[4]) console.log(kind, JSON.stringify(ops), JSON.stringify(c), r.text); }
      if (!d.divergence.at) console.log("NO LINE", r.text);
      if (d.divergence.diff.split("\n").length > 50) console.log("LONG"); }
  }
}
console.log({ clean, diverged, nochange, maxms, ms: performance.now() - t0 });
