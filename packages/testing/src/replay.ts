/**
 * Replays histories with the engine's own replayer, away from any store.
 *
 * 1. `replayHistory` says where the code parts from a history, as the engine would.
 * 2. `continueHistory` replays a prefix, makes the next turn live from what came in, and gives the facts that the code records now.
 */
import type { AnyWorkflow } from "@wovyr/sdk";
import { defaultLimits, type ExecutionLimits, type HistoryFact, type Incoming, isCommand, type Turn } from "@wovyr/sdk/internal";
import { Instance, type InstanceHost, Replay, systemLoop, Turns } from "@wovyr/server/internal";

export type ReplayedRun = { readonly instance: Instance; readonly failure: Error | undefined };

export type ReplayOptions = {
  readonly limits?: ExecutionLimits;
  /** Of the run whose history it is; the workflow may have used it. */
  readonly run?: string;
};

/** The state and the divergence, if there is one, after every turn has been replayed. */
export function replayHistory(workflow: AnyWorkflow, turns: readonly Turn[], options: ReplayOptions = {}): Promise<ReplayedRun> {
  return new Bench(workflow, turns, options).replay(turns);
}

/** What the code records for turn number `index` when it is made again after a replay of those before it. */
export async function continueHistory(
  workflow: AnyWorkflow,
  turns: readonly Turn[],
  index: number,
  options: ReplayOptions = {},
): Promise<readonly HistoryFact[]> {
  const turn = turns[index];
  if (turn === undefined) throw new Error(`this history has no turn ${index}`);
  const bench = new Bench(workflow, turns, options);
  const { failure } = await bench.replay(turns.slice(0, index));
  if (failure !== undefined) throw failure;
  return bench.make(turn);
}

class Bench {
  readonly #turns = new Turns(systemLoop, () => {});
  readonly #instance: Instance;
  #at = 0;
  #runs = 0;
  #made: (facts: readonly HistoryFact[]) => void = () => {};
  #broke: (failure: Error) => void = () => {};

  constructor(workflow: AnyWorkflow, turns: readonly Turn[], { limits = defaultLimits, run = "replayed" }: ReplayOptions) {
    const host: InstanceHost = {
      now: () => this.#at,
      mayAct: () => true,
      deferred: () => {},
      newRunId: () => `replayed-${this.#runs++}`,
      limits,
      eventSchema: () => undefined,
      retryAlone: () => {},
      turnEnded: (_instance, turn) => this.#made(turn.facts),
      turnBroke: (_instance, failure) => this.#broke(failure),
      jobDone: (instance) => this.#turns.done(instance),
    };
    const start = turns.flatMap((turn) => turn.events).find((fact) => fact.type === "InstanceStarted");
    this.#instance = new Instance(
      {
        tenant: "default",
        run,
        id: start?.id ?? run,
        shard: 0,
        workflow: workflow.name,
        version: workflow.version,
        correlationId: start?.correlationId,
        parent: start?.parent,
      },
      workflow.definition,
      host,
    );
  }

  replay(turns: readonly Turn[]): Promise<ReplayedRun> {
    return new Promise((resolve) => {
      const instance = this.#instance;
      const tail = turns.reduce((events, turn) => events + turn.events.length, 0);
      this.#turns.add(new Replay(instance, turns, tail, this.#turns, (failure) => resolve({ instance, failure })));
    });
  }

  make(turn: Turn): Promise<readonly HistoryFact[]> {
    return new Promise((resolve, reject) => {
      this.#at = turn.at;
      this.#made = resolve;
      this.#broke = reject;
      this.#instance.mailbox = turn.events.filter((fact): fact is Incoming => !isCommand(fact)).map((fact) => ({ fact }));
      this.#instance.phase = "queued";
      this.#turns.add(this.#instance);
    });
  }
}
