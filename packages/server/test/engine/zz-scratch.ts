import { activity, all, event, workflow, sleep, awaitEvent, type Flow } from "@wovyr/sdk";
import { createTestEnvironment } from "@wovyr/testing";
const charge = activity("charge", async (n: number) => n);
const wrong = (name: string, run: (input: never, ctx: never) => unknown) => workflow(name, run as () => Flow<unknown>);
const flows = [
  wrong("bare", async function* () { charge(1); yield* sleep(1); return 1; }),
  wrong("awaited", async function* () { await charge(1); yield* sleep(1); return 1; }),
  wrong("cond", async function* () { if (charge(1)) yield* sleep(1); return 1; }),
  wrong("prim", async function* () { if (charge(1) as never > 4) yield* sleep(1); return 1; }),
  wrong("options", async function* () { const o = [charge(1), charge(2)]; return yield* o[1]!; }),
  wrong("with", async function* () { return yield* charge(1).with({ summary: "x" }); }),
  wrong("value", async function* () { return { a: [charge(1)] }; }),
  wrong("ret", async function* () { return sleep(1); }),
  wrong("input", async function* () { yield* charge({ x: charge(2) } as never); }),
  wrong("vars", async function* (_: never, ctx: { variables: Record<string, unknown> }) { ctx.variables.x = sleep(1); yield* sleep(1); } as never),
  wrong("thrown", async function* () { throw sleep(1); }),
  wrong("foreign", async function* () { await fetch("http://127.0.0.1:1"); }),
  wrong("alls", async function* () { const a = charge(1), b = [charge(2)]; yield* sleep(1); yield* all([a, ...b]); return 1; }),
];
await using env = await createTestEnvironment({ workflows: flows });
for (const f of flows) {
  try { console.log(f.name, "=>", await env.execute(f as never)); } catch (e) { console.log(f.name, "!!", (e as Error).message, "|", ((e as Error).cause as {code?: string})?.code); }
}
for (const l of env.logs) console.log(l.level, l.message, JSON.stringify(l.data));
