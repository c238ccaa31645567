/** Orchestrators as child processes: started, killed, frozen, thawed. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { forkProcess } from "../processes.ts";
import { within } from "./until.ts";

export type HostedStore =
  | { readonly kind: "pglite"; readonly directory: string }
  | { readonly kind: "postgres"; readonly url: string; readonly others?: readonly string[] };

export type HostOptions = {
  readonly store: HostedStore;
  /** Where its activities record that they ran. */
  readonly record: string;
  /** Default: a free one. */
  readonly port?: number;
  /** Milliseconds, all of them. */
  readonly lease?: number;
  readonly turnTimeout?: number;
  readonly shutdownGrace?: number;
  readonly statementDeadline?: number;
  readonly activities?: number;
  /** Whether it runs random programs as well, whose activities end by themselves, and what is for workers. */
  readonly programs?: boolean;
  /** What its heap may grow to. */
  readonly heapMegabytes?: number;
  /** Loads its code and then waits for `go`: the next one is ready to start when the present one is killed. */
  readonly prepared?: boolean;
};

export type Ending = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export type Host = {
  readonly pid: number;
  /** Rejects when the process ended before it listened. */
  readonly url: Promise<string>;
  readonly ended: Promise<Ending>;
  /** Lets a prepared one begin. */
  go(): void;
  /** What it wrote to standard error so far. */
  log(): string;
  kill(signal: NodeJS.Signals): void;
  /** SIGKILL, and waits for the end. */
  destroy(): Promise<void>;
  memory(): Promise<NodeJS.MemoryUsage>;
};

const startLimit = 60_000;

export function startHost(options: HostOptions): Host {
  const child = forkProcess(join(import.meta.dirname, "host-process.ts"), options, {
    execArgv: options.heapMegabytes === undefined ? [] : [`--max-old-space-size=${options.heapMegabytes}`],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, WOVYR_TEST_RECORD: options.record },
  });
  let log = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-1_000_000);
  });
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal }) as Ending);
  const url = within(
    "the start of an orchestrator",
    startLimit,
    urlOf(child, () => log),
  );
  url.catch(() => {});
  return {
    pid: child.pid ?? 0,
    url,
    ended,
    log: () => log,
    go: () => void child.send("go"),
    kill: (signal) => void child.kill(signal),
    async destroy() {
      child.kill("SIGKILL");
      await ended;
    },
    async memory() {
      child.send("memory");
      const [message] = await once(child, "message");
      return (message as { memory: NodeJS.MemoryUsage }).memory;
    },
  };
}

async function urlOf(child: ChildProcess, log: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const heard = (message: unknown) => {
      if (typeof message !== "object" || message === null || !("url" in message)) return;
      child.removeListener("message", heard);
      resolve(String(message.url));
    };
    child.on("message", heard);
    child.once("exit", (code, signal) => reject(new Error(`the orchestrator ended (${code ?? signal}) before it listened:\n${log()}`)));
  });
}
