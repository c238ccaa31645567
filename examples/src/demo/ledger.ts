/** What was really done, in a file beside the store: one line when a deed begins and one when it is done, written by the process that does it. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Deed } from "../shop.ts";

export type Entry = Deed & { readonly pid: number; readonly state: "began" | "done" };

export function note(path: string, deed: Deed, state: Entry["state"]): void {
  appendFileSync(path, `${JSON.stringify({ ...deed, pid: process.pid, state } satisfies Entry)}\n`);
}

export function readLedger(path: string): Entry[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Entry);
}
