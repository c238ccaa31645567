/** Modules that tests run as processes of their own: as built by `npm test` (scripts/test-processes.ts), from source when a test file is run by itself. */
import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { basename, join } from "node:path";

/** What `node` is to be called with for a `*-process.ts`. */
export function programOf(path: string): { readonly file: string; readonly execArgv: readonly string[] } {
  const built = process.env.WOVYR_TEST_PROCESSES;
  if (built === undefined) return { file: path, execArgv: ["--conditions=source", "--import", "tsx"] };
  return { file: join(built, `${basename(path, ".ts")}.js`), execArgv: ["--enable-source-maps"] };
}

/** Starts one with an argument, which it reads as JSON; its standard error is this process's own unless told otherwise. */
export function forkProcess(path: string, argument: object, { execArgv = [], ...options }: ForkOptions = {}): ChildProcess {
  const program = programOf(path);
  return fork(program.file, [JSON.stringify(argument)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    ...options,
    execArgv: [...program.execArgv, ...execArgv],
  });
}
