/**
 * `npx tsx --conditions=source bench/src/profile.ts <family> [seconds]`: where the time goes in one family of rows.
 *
 * Self time by part and by function in the orchestrator's process; the rows' notes say how much processor time each unit takes there and in Postgres.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CpuProfile, type Share, sharesOf } from "./cpu-profile.ts";
import { families } from "./families.ts";
import { openPostgres } from "./postgres.ts";
import { runFamily } from "./run-family.ts";

const functionsShown = 45;

async function main(): Promise<void> {
  const [name, seconds] = process.argv.slice(2);
  const family = families.find((each) => each.name === name);
  if (family === undefined) throw new Error(`say which: ${families.map((each) => each.name).join(", ")}`);
  const directory = mkdtempSync(join(tmpdir(), "wovyr-bench-profile-"));
  const postgres = await openPostgres();
  try {
    const report = await runFamily(family, {
      quick: true,
      postgres,
      seconds: Number(seconds ?? 3),
      node: ["--cpu-prof", `--cpu-prof-dir=${directory}`, "--cpu-prof-interval=500"],
    });
    for (const { name: row, values, unit, note } of report.rows)
      console.log(`${row}: ${values.map((value) => value.toPrecision(4)).join(", ")} ${unit}${note === undefined ? "" : `; ${note}`}`);
    const { functions, parts, total } = sharesOf(mainThread(directory));
    print("By part", parts, total);
    print("By function", functions.slice(0, functionsShown), total);
  } finally {
    rmSync(directory, { recursive: true, force: true });
    await postgres.stop();
  }
}

/** Each thread leaves a profile; that of the main one is the largest. */
function mainThread(directory: string): CpuProfile {
  const files = readdirSync(directory).map((name) => join(directory, name));
  const [largest] = files.sort((a, b) => statSync(b).size - statSync(a).size);
  if (largest === undefined) throw new Error("the process left no profile");
  return JSON.parse(readFileSync(largest, "utf8")) as CpuProfile;
}

function print(title: string, shares: readonly Share[], total: number): void {
  console.log(`\n${title} (of ${(total / 1_000).toFixed(1)} s of work)`);
  for (const { name, milliseconds } of shares) console.log(`${((milliseconds / total) * 100).toFixed(1).padStart(6)} %  ${name}`);
}

await main();
