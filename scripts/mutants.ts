/**
 * Puts faults into a copy of the engine, one at a time, and shows that the tests notice: `npm run mutants [-- part of a name …]`; `npm run mutants -- places` only looks whether
 * their places are there.
 *
 * 1. Each fault is one small change of one file. A change whose place is gone fails before any is tried: then the fault has to be put in anew.
 * 2. Only some tests run: the explored workflows, the random programs against their model, the contract of the stores, and what a fault is about.
 * 3. A fault counts as caught when a test fails, or hangs until the time limit.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Mutant, mutants } from "./mutants-list.ts";
import { startPostgres, type TestPostgres } from "./test-postgres.ts";

const root = resolve(import.meta.dirname, "..");
const timeLimit = 240_000;
const wanted = process.argv.slice(2);
process.exitCode = everyPlaceIsThere() ? (wanted[0] === "places" ? 0 : await tryThem(mkdtempSync(join(tmpdir(), "wovyr-mutants-")))) : 1;

function everyPlaceIsThere(): boolean {
  const gone = mutants.filter(({ file, find }) => readFileSync(join(root, file), "utf8").split(find).length !== 2);
  for (const { name, file, find } of gone) console.error(`${name}: not once in ${file}: ${find}`);
  return gone.length === 0;
}

async function tryThem(copy: string): Promise<number> {
  let postgres: TestPostgres | undefined;
  try {
    makeCopy(copy);
    const chosen = mutants.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
    if (process.env.WOVYR_TEST_DATABASE_URL === undefined && chosen.some((mutant) => mutant.postgres === true)) {
      postgres = await startPostgres();
      process.env.WOVYR_TEST_DATABASE_URL = postgres.url;
    }
    const survivors = chosen.filter((mutant) => !isCaught(mutant, copy));
    console.log(`\n${chosen.length - survivors.length} of ${chosen.length} faults were caught`);
    return survivors.length === 0 ? 0 : 1;
  } finally {
    await postgres?.stop();
    rmSync(copy, { recursive: true });
  }
}

/** The workspace with its own packages; what it depends on is shared. */
function makeCopy(copy: string): void {
  for (const part of ["packages", "package.json", "tsconfig.json"])
    cpSync(join(root, part), join(copy, part), { recursive: true, filter: (path) => !/\/(dist|node_modules|\.wovyr)$/.test(path) });
  mkdirSync(join(copy, "node_modules", "@wovyr"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "@wovyr") symlinkSync(join(root, "node_modules", name), join(copy, "node_modules", name));
  for (const name of ["sdk", "server", "testing"]) symlinkSync(join(copy, "packages", name), join(copy, "node_modules", "@wovyr", name));
}

function isCaught({ name, file, find, replace, tests }: Mutant, copy: string): boolean {
  const path = join(copy, file);
  const sound = readFileSync(path, "utf8");
  writeFileSync(
    path,
    sound.replace(find, () => replace),
  );
  try {
    for (const test of tests) {
      const began = performance.now();
      const { status, stdout } = spawnSync(
        process.execPath,
        ["--conditions=source", "--import", "tsx", "--test", "--test-reporter=tap", test],
        {
          cwd: copy,
          encoding: "utf8",
          timeout: timeLimit,
          env: { ...process.env, WOVYR_TEST_SEED: "1" },
          maxBuffer: 64 * 1024 * 1024,
        },
      );
      if (status === 0) continue;
      const seconds = ((performance.now() - began) / 1_000).toFixed(1);
      const failed = /^\s*not ok \d+ - (.*)$/m.exec(stdout)?.[1] ?? "it did not end";
      console.log(`caught    ${name}\n          by ${test}: ${failed} (${seconds} s)`);
      return true;
    }
  } finally {
    writeFileSync(path, sound);
  }
  console.log(`SURVIVED  ${name}`);
  return false;
}
