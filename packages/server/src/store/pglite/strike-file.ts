import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { InstanceKey } from "../../engine/ports/store.ts";
import type { Strike } from "../strike-sink.ts";

/** Counts the strikes that a file holds, one a line; a line that was cut off by a crash counts for nothing. */
export function countStrikes(path: string): (Strike & { readonly count: number })[] {
  const counted = new Map<string, Strike & { count: number }>();
  for (const strike of readStrikes(path)) {
    const key = JSON.stringify([strike.tenant, strike.run, strike.tail]);
    const known = counted.get(key);
    if (known === undefined) counted.set(key, { ...strike, count: 1 });
    else known.count += 1;
  }
  return [...counted.values()];
}

export function clearStrikes(path: string, { tenant, run }: InstanceKey): void {
  const strikes = readStrikes(path);
  const kept = strikes.filter((strike) => strike.tenant !== tenant || strike.run !== run);
  if (kept.length === strikes.length) return;
  if (kept.length === 0) {
    rmSync(path, { force: true });
    return;
  }
  writeFileSync(`${path}.new`, kept.map((strike) => `${JSON.stringify(strike)}\n`).join(""));
  renameSync(`${path}.new`, path);
}

function readStrikes(path: string): Strike[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Strike];
    } catch {
      return [];
    }
  });
}
