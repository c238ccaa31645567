/**
 * `npm run bench:peers [-- quick] [rounds=N] [write] [latest] [peer …]`
 *
 * 1. Each round runs every peer once, each round beginning with another one, so that no mood of the machine falls on one of them alone.
 * 2. A peer that is not there, does not start or fails is a row that says why. Nothing else fails.
 * 3. However it ends, the processes that it started and the databases and directories that it made are gone.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPostgres } from "../../src/postgres.ts";
import { machineLines } from "../../src/table.ts";
import { install, versionsOf } from "./install.ts";
import { fullSizes, quickSizes } from "./measures.ts";
import { peers } from "./peers.ts";
import { Results } from "./results.ts";
import { interrupt, runPeer } from "./run-peer.ts";
import { markdownOf } from "./table.ts";

const flags = ["quick", "write", "latest"];
/** This file runs from `bench/peers/dist/bench/peers/src`. */
const page = join(import.meta.dirname, "..", "..", "..", "..", "..", "..", "docs", "benchmarks.md");

function read(words: readonly string[]) {
  const names = words.filter((word) => !flags.includes(word) && !/^rounds=[1-9]\d*$/.test(word));
  const unknown = names.filter((name) => !peers.some((peer) => peer.name === name));
  if (unknown.length > 0)
    throw new Error(
      `there is no ${unknown.join(", ")}; there are: ${flags.join(", ")}, rounds=N, ${peers.map(({ name }) => name).join(", ")}`,
    );
  const rounds = words.find((word) => word.startsWith("rounds="))?.slice("rounds=".length);
  return {
    quick: words.includes("quick"),
    write: words.includes("write"),
    latest: words.includes("latest"),
    rounds: Number(rounds ?? 3),
    chosen: names.length === 0 ? peers : peers.filter((peer) => names.includes(peer.name)),
  };
}

async function main(): Promise<void> {
  const { quick, write, latest, rounds, chosen } = read(process.argv.slice(2));
  install(latest);
  const postgres = await openPostgres();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      process.exitCode = 130;
      interrupt();
    });
  }
  try {
    const began = performance.now();
    const results = new Results();
    for (let round = 0; round < rounds; round += 1) {
      for (let at = 0; at < chosen.length; at += 1) {
        const peer = chosen[(at + round) % chosen.length];
        if (peer === undefined || process.exitCode === 130) continue;
        console.error(`round ${round + 1} of ${rounds}: ${peer.title}`);
        results.add(peer, await runPeer(peer, quick ? quickSizes : fullSizes, postgres));
      }
    }
    const about = [
      new Date().toISOString().slice(0, 10),
      ...machineLines(postgres.about).map((line) => line.replace(/\.$/, "")),
      ...(quick ? ["Quick: short runs and less data; good for a look, not for a comparison"] : []),
      `${((performance.now() - began) / 1_000).toFixed(0)} s in all`,
    ];
    const versions = new Map(chosen.map((peer) => [peer, versionsOf(peer)]));
    const text = markdownOf({ peers: chosen, results, rounds, about, versions });
    console.log(text);
    if (write && process.exitCode === undefined) writeFileSync(page, text);
  } finally {
    await postgres.stop();
  }
}

await main();
