/** Runs one family of rows in a process of its own, within its deadline, on databases of its own. */
import { fork } from "node:child_process";
import { join } from "node:path";
import type { Family, FamilyContext, FamilyReport } from "./family.ts";
import type { BenchPostgres } from "./postgres.ts";

/** As docs/operations.md advises for production: room for a batch of young objects. */
const productionFlags = ["--max-semi-space-size=64"];

export type RunOptions = {
  readonly quick: boolean;
  readonly postgres: BenchPostgres;
  /** Further arguments for Node. */
  readonly node?: readonly string[];
  readonly seconds?: number;
};

export async function runFamily(
  family: Family,
  { quick, postgres, node = [], seconds = quick ? 0.4 : 3 }: RunOptions,
): Promise<FamilyReport> {
  const databases: string[] = [];
  try {
    for (let count = 0; count < family.databases; count += 1) databases.push(await postgres.create());
    const context: FamilyContext = { quick, databases, postmaster: postgres.postmaster, seconds };
    return await inProcess(family, context, node);
  } finally {
    for (const database of databases) await postgres.drop(database);
  }
}

function inProcess(family: Family, context: FamilyContext, node: readonly string[]): Promise<FamilyReport> {
  const child = fork(join(import.meta.dirname, "row-process.ts"), {
    execArgv: [...process.execArgv, ...productionFlags, ...(family.node ?? []), ...node],
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    let outcome: FamilyReport | Error = new Error(`${family.name}: its process ended without a report`);
    const deadline = setTimeout(() => {
      outcome = new Error(`${family.name}: not done in ${family.deadline} s`);
      child.kill("SIGKILL");
    }, family.deadline * 1_000);
    child.on("message", (message: FamilyReport | { readonly failure: string }) => {
      outcome = "failure" in message ? new Error(message.failure) : message;
    });
    child.once("error", reject);
    child.once("exit", () => {
      clearTimeout(deadline);
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    });
    child.send({ family: family.name, ...context });
  });
}
