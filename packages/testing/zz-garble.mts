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
process.on("uncaughtException", (e) => { console.log("CRASH", e); process.exit(1); });
process.on("unhandledRejection", (e) => { console.log("REJECT", e); process.exit(1); });
const counts: Record<string, number> = {};
const junk = () => pick([null, undefined, 0, -1, 1e99, "", "x", "0", "0.1", [], {}, { name: "E", message: "m", cause: null }, { name: "E", message: "m" }, new Date(NaN), true, "InstanceStarted", "ActivityCompleted"]);
for (let i = 0; i < 200; i++) {
  const ops = Array.from({ length: 2 + Math.floor(rnd() * 6) }, () => gen(2));
  await using env = await createTestEnvironment({ workflows: [prog(ops), sub], seed: i + 1 });
  const run = await env.start(prog(ops));
  for (let j = 0; j < 5; j++) { await env.advance("2s"); try { await run.send(pick(evs)); if (rnd() < 0.1) await run.cancel(); } catch {} }
  await env.settle();
  const h = await env.history(run.id);
  for (let m = 0; m < 40; m++) {
    const g: any[] = structuredClone(h);
    for (let n = 0; n < 1 + rnd() * 2; n++) {
      const at = Math.floor(rnd() * g.length); const e = g[at];
      const k = rnd();
      if (!e || typeof e !== "object") continue;
      if (k < 0.5 && e.data && typeof e.data === "object") { const key = pick(Object.keys(e.data).concat("effect")); e.data[key] = junk(); }
      else if (k < 0.6) e[pick(Object.keys(e))] = junk();
      else if (k < 0.7) { e.type = pick(h).type; }
      else if (k < 0.8) { e.data = structuredClone(pick(h).data); }
      else if (k < 0.9) { g.splice(at, 1); g.forEach((x, ix) => { const d = x.seq - (ix + 1); x.seq = ix + 1; x.turn = Math.min(x.seq, Math.max(1, x.turn - d)); }); }
      else { const f = structuredClone(pick(h)); g.splice(at, 0, f); g.forEach((x, ix) => { if (x && typeof x === "object") { x.seq = ix + 1; x.turn = ix + 1; } }); }
    }
    const r = await replay([prog(ops), sub], g as any, { runId: run.runId });
    const d = r.runs[0]!; const k = d.problem ? d.problem.message.replace(/[\d"].*/s, "").slice(0, 70) : d.divergence ? "diverged" : "ok";
    counts[k] = (counts[k] ?? 0) + 1;
  }
}
console.log(counts);
