/**
 * Replays histories with the engine's own replayer, away from any store.
 *
 * 1. `replayHistory` says where the code parts from a history, as the engine would.
 * 2. `continueHistory` replays a prefix, makes the next turn live from what came in, and gives the facts that the code records now.
 * 3. A bench that tells lines remembers them only while one of its jobs steps; between them and afterwards the process is as it was.
 */
import type { AnyWorkflow } from "@wovyr/sdk";
import {
  defaultLimits,
  type ExecutionLimits,
  type HistoryFact,
  type Incoming,
  isCommand,
  rememberSites,
  sitesAreRemembered,
  type Turn,
  type WorkflowDefinition,
} from "@wovyr/sdk/internal";
import { Instance, type InstanceHost, Replay, systemLoop, Turns } from "@wovyr/server/internal";

export type ReplayedRun = { readonly instance: Instance; readonly failure: Error | undefined };

/** Of one history that is replayed by itself. */
export type ReplayHistoryOptions = {
  readonly limits?: ExecutionLimits;
  /** Of the run whose history it is; the workflow may have used it. */
  readonly run?: string;
};

/** The state and the divergence, if there is one, after every turn has been replayed. */
export function replayHistory(workflow: AnyWorkflow, turns: readonly Turn[], options: ReplayHistoryOptions = {}): Promise<ReplayedRun> {
  return new ReplayBench(workflow.definition, turns, options).replay(turns);
}

/** What the code records for turn number `index` when it is made again after a replay of those before it. */
export async function continueHistory(
  workflow: AnyWorkflow,
  turns: readonly Turn[],
  index: number,
  options: ReplayHistoryOptions = {},
): Promise<readonly HistoryFact[]> {
  const turn = turns[index];
  if (turn === undefined) throw new Error(`this history has no turn ${index}`);
  const bench = new ReplayBench(workflow.definition, turns, options);
  const { failure } = await bench.replay(turns.slice(0, index));
  if (failure !== undefined) throw failure;
  return bench.make(turn);
}

export class ReplayBench {
  readonly turns: Turns;
  readonly instance: Instance;
  #at = 0;
  #runs = 0;
  #made: (facts: readonly HistoryFact[]) => void = () => {};
  #broke: (failure: Error) => void = () => {};

  constructor(
    definition: WorkflowDefinition,
    turns: readonly Turn[],
    { limits = defaultLimits, run = "replayed", lines = false }: ReplayHistoryOptions & { readonly lines?: boolean },
  ) {
    this.turns = new Turns(systemLoop, lines ? rememberingLines() : () => {});
    // What was for workers then is for workers now.
    const queues = new Set(turns.flatMap(({ events }) => events.flatMap((fact) => ("queue" in fact ? (fact.queue ?? []) : []))));
    const host: InstanceHost = {
      now: () => this.#at,
      group: "default",
      mayAct: () => true,
      deferred: () => {},
      newRunId: () => `replayed-${this.#runs++}`,
      limits,
      eventSchema: () => undefined,
      judged: (_instance, fact) => fact,
      isQueued: (queue) => queues.has(queue),
      announce: () => {},
      settle: () => {},
      turnEnded: (_instance, turn) => this.#made(turn.facts),
      turnBroke: (_instance, failure) => this.#broke(failure),
      jobDone: (instance) => this.turns.done(instance),
    };
    const start = turns.flatMap((turn) => turn.events).find((fact) => fact.type === "InstanceStarted");
    this.instance = new Instance(
      {
        tenant: "default",
        run,
        id: start?.id ?? run,
        shard: 0,
        workflow: definition.name,
        version: definition.version,
        correlationId: start?.correlationId,
        parent: start?.parent,
      },
      definition,
      host,
    );
  }

  /** `prepare` is called before the code is entered. */
  replay(turns: readonly Turn[], prepare: (instance: Instance) => void = () => {}): Promise<ReplayedRun> {
    return new Promise((resolve) => {
      const { instance } = this;
      const tail = turns.reduce((events, turn) => events + turn.events.length, 0);
      const job = new Replay(instance, turns, tail, this.turns, (failure) => resolve({ instance, failure }));
      prepare(instance);
      this.turns.add(job);
    });
  }

  make(turn: Turn): Promise<readonly HistoryFact[]> {
    return new Promise((resolve, reject) => {
      this.#at = turn.at;
      this.#made = resolve;
      this.#broke = reject;
      this.instance.mailbox = turn.events.filter((fact): fact is Incoming => !isCommand(fact)).map((fact) => ({ fact, settled: true }));
      this.instance.phase = "queued";
      this.turns.add(this.instance);
    });
  }
}

/** Hears which job runs: lines are remembered from the first one of a batch until none runs any more. */
function rememberingLines(): (job: unknown) => void {
  let before: boolean | undefined;
  return (job) => {
    if (job !== undefined) {
      before ??= sitesAreRemembered();
      rememberSites(true);
    } else if (before !== undefined) {
      rememberSites(before);
      before = undefined;
    }
  };
}
