/** GATEs: files that activities wait for and tests create, so that they work across processes. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const fileOf = (directory: string, gate: string) => join(directory, `gate-${gate}`);

export async function passGate(directory: string, gate: string, signal: AbortSignal): Promise<void> {
  while (!existsSync(fileOf(directory, gate))) await pause(10, undefined, { signal });
}

export function openGate(directory: string, gate: string): void {
  writeFileSync(fileOf(directory, gate), "");
}
