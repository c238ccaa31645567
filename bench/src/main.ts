/**
 * `npm run bench [-- quick] [family …]`
 *
 * 1. Every family of rows runs in a process of its own, on empty databases of its own, within a deadline; one that fails is reported, and the rest go on.
 * 2. The floor is measured just before each family: a ratio compares what was measured within the same minute.
 * 3. However it ends, the processes that it started and the databases and directories that it made are gone.
 */
import { families } from "./families.ts";
import type { Family } from "./family.ts";
import { type Floor, measureFloor } from "./floor.ts";
import { type BenchPostgres, openPostgres } from "./postgres.ts";
import { runFamily } from "./run-family.ts";
import { familyLines, floorLines, machineLines } from "./table.ts";

const notMeasured = `
Not measured: a network between the parts, payloads of more than a few bytes, activities that do anything, a disk without
a write cache of its own, hours of operation (autovacuum, checkpoints), recovery after a crash. Idle latency is that of one caller.`;

const print = (lines: readonly string[]) => console.log(lines.join("\n"));

async function measure(family: Family, quick: boolean, postgres: BenchPostgres, floorDatabase: string, floors: Floor[]): Promise<boolean> {
  const floor = await measureFloor(floorDatabase, quick ? 0.2 : 2);
  floors.push(floor);
  try {
    const report = await runFamily(family, { quick, postgres });
    print(familyLines({ ...report, title: family.title, floor }, family.databases > 0));
    return true;
  } catch (error) {
    print(["", `${family.title}: failed`, `  ${error instanceof Error ? error.message : String(error)}`]);
    return false;
  }
}

async function main(): Promise<void> {
  const names = process.argv.slice(2);
  const quick = names.includes("quick");
  const asked = names.filter((name) => name !== "quick");
  const unknown = asked.filter((name) => !families.some((family) => family.name === name));
  if (unknown.length > 0)
    throw new Error(`there is no ${unknown.join(", ")}; there are: quick, ${families.map(({ name }) => name).join(", ")}`);
  const began = performance.now();
  const postgres = await openPostgres();
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= postgres.stop());
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void stop().finally(() => process.exit(130)));
  try {
    print(machineLines(postgres.about));
    if (quick) print(["Quick: short runs and less data; good for a look, not for a comparison."]);
    const floorDatabase = await postgres.create();
    const floors: Floor[] = [];
    for (const family of families) {
      if (asked.length > 0 && !asked.includes(family.name)) continue;
      if (!(await measure(family, quick, postgres, floorDatabase, floors))) process.exitCode = 1;
    }
    print(floorLines(floors));
    print([notMeasured, `${((performance.now() - began) / 1_000).toFixed(0)} s in all`]);
  } finally {
    await stop();
  }
}

await main();
