/** The process of one engine in one round: does what its parent orders, reports, and does not outlive it. */
import type { EngineModule } from "./engine.ts";
import { measureEngine } from "./measure-engine.ts";
import type { Order, Report } from "./messages.ts";

const report = (message: Report) => {
  if (process.connected) process.send?.(message);
};

process.on("disconnect", () => process.exit(0));

const order = JSON.parse(process.argv[2] as string) as Order;
const { engine: name, database, directory, task } = order;

let engineBegan = 0;

/** The first process stays in its last step until it is killed; the second ends it. */
async function lastStep(): Promise<void> {
  const now = performance.now();
  report({ kind: "lastStep", sinceProcess: now, sinceEngine: now - engineBegan });
  if (task.kind === "begin") await new Promise(() => setInterval(() => {}, 60_000));
}

async function work(): Promise<void> {
  const { start } = (await import(`./engines/${name}.js`)) as EngineModule;
  engineBegan = performance.now();
  const engine = await start({ database, directory, lastStep });
  if (task.kind === "begin") return engine.startLong(task.steps);
  if (task.kind === "recover") return;
  await measureEngine(engine, { ...task, report: (result) => report({ kind: "result", result }) });
  await engine.close();
  report({ kind: "done" });
}

work().catch((error: unknown) => report({ kind: "failed", failure: error instanceof Error ? error.message : String(error) }));
