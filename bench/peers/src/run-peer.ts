/**
 * One peer in one round.
 *
 * 1. It has a process, a database and a directory of its own. The recovery has others, and two processes: the first is killed in the last step of a long run.
 * 2. Whatever happens, its processes are ended and its database and directory removed, and what happened is told as the reason of the values that are missing.
 * 3. Each of its processes leads a process group, in which is what it starts (Restate's server), so that all of them can be ended together.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchPostgres } from "../../src/postgres.ts";
import type { Failure, Value } from "./measure-engine.ts";
import { longSteps, type MeasureName, measures, type Sizes } from "./measures.ts";
import type { Order, Report, Task } from "./messages.ts";
import type { Peer } from "./peers.ts";

/** As docs/operations.md advises for production; for every engine's process. */
const nodeFlags = ["--max-semi-space-size=64"];
const recoveryMeasures: readonly MeasureName[] = ["recovery", "recoveryStart"];
const beginSeconds = 120;
/** More than the longest lease of a peer. */
const recoverySeconds = 60;
const measureSeconds = (sizes: Sizes) => 60 + 6 * (sizes.seconds + sizes.warmUpSeconds) + 3 * sizes.latencySeconds;

type Place = { readonly database: string; readonly directory: string };

export async function runPeer(peer: Peer, sizes: Sizes, postgres: BenchPostgres): Promise<(Value | Failure)[]> {
  const results = await inPlace(postgres, (place) => measured(peer, sizes, postgres.postmaster, place));
  if (peer.recovers) results.push(...(await inPlace(postgres, (place) => recovered(peer, place))));
  return results;
}

async function inPlace<T>(postgres: BenchPostgres, work: (place: Place) => Promise<T>): Promise<T> {
  const database = await postgres.create();
  const directory = mkdtempSync(join(tmpdir(), "wovyr-bench-peers-"));
  try {
    return await work({ database, directory });
  } finally {
    await postgres.drop(database);
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measured(peer: Peer, sizes: Sizes, postmaster: number | undefined, place: Place): Promise<(Value | Failure)[]> {
  const results: (Value | Failure)[] = [];
  let child: EngineProcess | undefined;
  try {
    child = new EngineProcess(peer, place, { kind: "measure", sizes, postmaster });
    await child.until(measureSeconds(sizes), (report) => {
      if (report.kind === "result") results.push(report.result);
      return report.kind === "done";
    });
  } catch (error) {
    const failure = textOf(error);
    for (const { name: measure } of measures) {
      const known = results.some((result) => result.measure === measure);
      if (!known && !recoveryMeasures.includes(measure)) results.push({ measure, failure });
    }
  } finally {
    await child?.kill();
  }
  return results;
}

async function recovered(peer: Peer, place: Place): Promise<(Value | Failure)[]> {
  try {
    await untilLastStep(new EngineProcess(peer, place, { kind: "begin", steps: longSteps }), beginSeconds);
    const { sinceProcess, sinceEngine } = await untilLastStep(new EngineProcess(peer, place, { kind: "recover" }), recoverySeconds);
    return [
      { measure: "recovery", value: sinceProcess / 1_000 },
      { measure: "recoveryStart", value: sinceEngine / 1_000 },
    ];
  } catch (error) {
    return recoveryMeasures.map((measure) => ({ measure, failure: textOf(error) }));
  }
}

type LastStep = Extract<Report, { readonly kind: "lastStep" }>;

async function untilLastStep(child: EngineProcess, seconds: number): Promise<LastStep> {
  let last: LastStep | undefined;
  try {
    await child.until(seconds, (report) => {
      if (report.kind === "lastStep") last = report;
      return last !== undefined;
    });
  } finally {
    await child.kill();
  }
  return last as LastStep;
}

/** Ends what runs, and lets nothing more begin. */
export function interrupt(): void {
  EngineProcess.interrupt();
}

class EngineProcess {
  static readonly #open = new Set<EngineProcess>();
  static #interrupted = false;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  static interrupt(): void {
    EngineProcess.#interrupted = true;
    for (const open of EngineProcess.#open) void open.kill();
  }

  constructor(peer: Peer, place: Place, task: Task) {
    if (EngineProcess.#interrupted) throw new Error("interrupted");
    const order: Order = { engine: peer.name, ...place, task };
    this.#child = fork(join(import.meta.dirname, "engine-process.js"), [JSON.stringify(order)], {
      execArgv: nodeFlags,
      env: { ...process.env, NODE_ENV: "production" },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      detached: true,
    });
    this.#ended = new Promise((resolve) => this.#child.once("close", () => resolve()));
    EngineProcess.#open.add(this);
  }

  /** Resolves when a report is the one that is waited for. */
  until(seconds: number, isLast: (report: Report) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => reject(new Error(`not done in ${seconds} s`)), seconds * 1_000);
      const settle = (then: () => void) => {
        clearTimeout(deadline);
        then();
      };
      this.#child.on("message", (report: Report) => {
        if (report.kind === "failed") settle(() => reject(new Error(report.failure)));
        else if (isLast(report)) settle(resolve);
      });
      this.#child.once("error", (error) => settle(() => reject(error)));
      this.#child.once("exit", (code) => settle(() => reject(new Error(`its process ended with ${code}`))));
    });
  }

  /** Ends its group, without a word. */
  async kill(): Promise<void> {
    EngineProcess.#open.delete(this);
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // All of the group have ended already.
    }
    await this.#ended;
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
