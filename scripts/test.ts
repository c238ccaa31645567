/**
 * Runs the tests: `npm run test:only -- [file, directory or pattern …]`.
 *
 * 1. What tests run as processes of their own is built first (test-processes.ts).
 * 2. Small tests share processes (test-groups.ts), and the runner does not follow their promises (light-runner.ts), unless files were named.
 * 3. Unless WOVYR_TEST_DATABASE_URL names a Postgres, one is started for the run and stopped after it, however the run ends.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { groupedTests } from "./test-groups.ts";
import { startPostgres, type TestPostgres } from "./test-postgres.ts";
import { buildTestProcesses } from "./test-processes.ts";

const root = resolve(import.meta.dirname, "..");
const defaults = ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts"];
const timeout = 300_000;

const reporter = process.argv.some((argument) => argument.startsWith("--test-reporter")) ? [] : ["--test-reporter=spec"];
const [options, selections] = partition(process.argv.slice(2), (argument) => argument.startsWith("-"));
const files = select(selections.length > 0 ? selections : defaults);
if (files.length === 0) {
  console.error(`no test matches ${selections.join(" ")}`);
  process.exit(1);
}
process.exit(await main());

async function main(): Promise<number> {
  let postgres: TestPostgres | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= postgres?.stop() ?? Promise.resolve();
    return stopping;
  };
  const environment = { ...process.env };
  if (environment.WOVYR_TEST_DATABASE_URL === undefined) {
    postgres = await startPostgres();
    environment.WOVYR_TEST_DATABASE_URL = postgres.url;
    console.log(`testing with ${postgres.version}`);
  }
  const processes = await buildTestProcesses();
  environment.WOVYR_TEST_PROCESSES = processes;
  const named = selections.length > 0;
  const started = named ? files : groupedTests(root, files, join(processes, "groups"));
  const runner = spawn(
    process.execPath,
    [
      "--conditions=source",
      "--import",
      "tsx",
      ...(named ? [] : ["--import", "./scripts/light-runner.ts"]),
      "--test",
      "--test-concurrency=2",
      `--test-timeout=${timeout}`,
      ...reporter,
      ...options,
      ...started,
    ],
    { cwd: root, env: environment, stdio: "inherit" },
  );
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => runner.kill(signal));
  const code = await new Promise<number>((done) => {
    runner.once("error", (error) => {
      console.error(error);
      done(1);
    });
    runner.once("close", (status) => done(status ?? 1));
  });
  await stop();
  return code;
}

/** Files by path, by directory or by pattern (`*` within a name, `**` across directories), relative to the repository. */
function select(wanted: readonly string[]): string[] {
  const found = new Set<string>();
  for (const each of wanted) {
    const path = resolve(root, each);
    if (existsSync(path)) for (const file of statSync(path).isDirectory() ? testFiles(path) : [path]) found.add(file);
    else for (const file of matching(each)) found.add(file);
  }
  return [...found].map((file) => relative(root, file)).sort();
}

function matching(pattern: string): string[] {
  const expression = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"));
  const test = new RegExp(`^${expression}$`);
  return testFiles(root).filter((file) => test.test(relative(root, file)));
}

function testFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === "node_modules" || entry.name === "dist" || entry.name.startsWith(".")) return [];
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return testFiles(path);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}

function partition<T>(items: readonly T[], first: (item: T) => boolean): [T[], T[]] {
  return [items.filter(first), items.filter((item) => !first(item))];
}
