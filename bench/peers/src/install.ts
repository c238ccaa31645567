/** The peers' packages, in a `node_modules` of their own beside their package.json. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Peer, peers } from "./peers.ts";

/** This file runs from `dist/bench/peers/src`. */
const home = join(import.meta.dirname, "..", "..", "..", "..");

/** Installs what package.json names, or the newest of it. What cannot be installed is told by the rows of those who need it. */
export function install(newest: boolean): void {
  const packages = peers.flatMap((peer) => peer.packages);
  if (!newest && packages.every((name) => versionOf(name) !== undefined)) return;
  const what = newest ? ["--no-save", ...packages.map((name) => `${name}@latest`)] : [];
  const { status } = spawnSync("npm", ["install", ...what], {
    cwd: home,
    stdio: ["ignore", 2, 2],
    env: { ...process.env, SCARF_ANALYTICS: "false" },
  });
  if (status !== 0) console.error("npm could not install all of the peers; what is missing is said in their rows");
}

export function versionsOf({ packages, ours }: Peer): string {
  if (ours) return "as built here";
  return packages.map((name) => `${name} ${versionOf(name) ?? "(not installed)"}`).join(", ");
}

function versionOf(name: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(home, "node_modules", name, "package.json"), "utf8")) as { version: string }).version;
  } catch {
    return undefined;
  }
}
