/** The orchestrator as a child process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";

export type Server = { readonly pid: number; end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> };

/** Resolves when it takes work. */
export async function startServer(...args: readonly string[]): Promise<Server> {
  const host = join(import.meta.dirname, "host.ts");
  const child = spawn(process.execPath, ["--conditions=source", "--import", "tsx", host, ...args], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const [message] = await Promise.race([once(child, "message"), ended]);
  if (message !== "ready") throw new Error(`the orchestrator did not start (exit code ${message})`);
  return { pid: child.pid ?? 0, end: (signal) => end(child, ended, signal) };
}

async function end(child: ChildProcess, ended: Promise<unknown[]>, signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
  child.kill(signal);
  await ended;
  return child.exitCode;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
