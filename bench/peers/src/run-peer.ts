/**
 * One peer in one round.
 *
 * 1. It has a process, a database and a directory of its own. The recovery has others, and two processes: the first is killed in the last step of a long run.
 * 2. Whatever happens, its processes are ended and its database and directory removed, and what happened is told as the reason of the values that are missing.
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
  const results = await inPlace(postgres, (place) => measured(peer, sizes, place));
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

async function measured(peer: Peer, sizes: Sizes, place: Place): Promise<(Value | Failure)[]> {
  const results: (Value | Failure)[] = [];
  const child = new EngineProcess(peer, place, { kind: "measure", sizes });
  try {
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
    await child.kill();
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
      return last !== undefined && child.known;
    });
  } finally {
    await child.kill();
  }
  return last as LastStep;
}

class EngineProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #processes: readonly number[] | undefined;

  constructor(peer: Peer, place: Place, task: Task) {
    const order: Order = { engine: peer.name, ...place, task };
    this.#child = fork(join(import.meta.dirname, "engine-process.js"), [JSON.stringify(order)], {
      execArgv: nodeFlags,
      env: { ...process.env, NODE_ENV: "production" },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#ended = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  /** Whether it told which processes belong to it. */
  get known(): boolean {
    return this.#processes !== undefined;
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
        if (report.kind === "processes") this.#processes = report.processes;
        if (report.kind === "failed") settle(() => reject(new Error(report.failure)));
        else if (isLast(report)) settle(resolve);
      });
      this.#child.once("error", (error) => settle(() => reject(error)));
      this.#child.once("exit", (code) => settle(() => reject(new Error(`its process ended with ${code}`))));
    });
  }

  /** Ends it and what belongs to it, without a word. */
  async kill(): Promise<void> {
    for (const process of this.#processes ?? []) kill(process);
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
