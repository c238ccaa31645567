/** Processes of the rows about several orchestrators, as their parent sees them. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const startLimit = 60_000;
const spreadLimit = 30_000;
const shards = 256;

export type LoadAsk =
  /** How many shards it owns. */
  | { readonly what: "shards" }
  /** Runs one-step workflows in process; how many. */
  | { readonly what: "run"; readonly inFlight: number; readonly seconds: number }
  /** The same through HTTP, of another process. */
  | { readonly what: "call"; readonly url: string; readonly connections: number; readonly inFlight: number; readonly seconds: number }
  /** Starts so many runs whose activities do not end in that process; resolves when all are at it. */
  | { readonly what: "hold"; readonly runs: number };

export type LoadAnswer = { readonly value: number } | { readonly failure: string };

export class LoadProcess {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** With an orchestrator over the database, or (undefined) none. */
  static async start(database: string | undefined): Promise<LoadProcess> {
    const child = fork(join(import.meta.dirname, "load-process.ts"), database === undefined ? [] : [database], {
      execArgv: process.execArgv.filter((argument) => !argument.startsWith("--cpu-prof")),
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const [message] = (await once(child, "message", { signal: AbortSignal.timeout(startLimit) })) as [{ url: string }];
    return new LoadProcess(child, message.url);
  }

  async ask(ask: LoadAsk): Promise<number> {
    const answered = once(this.#child, "message", { signal: AbortSignal.timeout(startLimit) }) as Promise<[LoadAnswer]>;
    this.#child.send(ask);
    const [answer] = await answered;
    if ("failure" in answer) throw new Error(answer.failure);
    return answer.value;
  }

  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill(signal);
    await gone;
  }
}

/** Resolves when the shards of a group are spread evenly over so many nodes; `owned` says how many each has. */
export async function evenlySpread(nodes: number, owned: () => Promise<readonly number[]>): Promise<void> {
  const end = performance.now() + spreadLimit;
  for (;;) {
    const counts = await owned();
    if (Math.min(...counts) >= Math.floor(shards / nodes)) return;
    if (performance.now() > end) throw new Error(`the shards are not spread: ${counts.join(", ")}`);
    await sleep(50);
  }
}
