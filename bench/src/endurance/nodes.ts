/** Orchestrators as processes: started, killed, started again under the address that they had. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export type Node = { readonly name: string; url: string; process: ChildProcess };

const startLimit = 60_000;

export class Nodes {
  readonly #database: string;
  readonly all: Node[] = [];

  constructor(database: string) {
    this.#database = database;
  }

  async start(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      const { process, url } = await this.#launch("0");
      this.all.push({ name: `node ${at + 1}`, url, process });
    }
  }

  /** SIGKILL; resolves when the process is gone. */
  async kill(node: Node): Promise<void> {
    const gone = once(node.process, "exit");
    node.process.kill("SIGKILL");
    await gone;
  }

  async restart(node: Node): Promise<void> {
    node.process = (await this.#launch(new URL(node.url).port)).process;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.all.map((node) => (node.process.exitCode === null && node.process.signalCode === null ? this.kill(node) : undefined)),
    );
  }

  async #launch(port: string): Promise<{ process: ChildProcess; url: string }> {
    const child = fork(join(import.meta.dirname, "node-process.ts"), [this.#database, port], {
      execArgv: [...process.execArgv, "--max-semi-space-size=64"],
      env: { ...process.env, NODE_ENV: "production" },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const [message] = (await Promise.race([
      once(child, "message", { signal: AbortSignal.timeout(startLimit) }),
      once(child, "exit").then(() => Promise.reject(new Error("a node ended before it listened"))),
    ])) as [{ url: string }];
    return { process: child, url: message.url };
  }
}
