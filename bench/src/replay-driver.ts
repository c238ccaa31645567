/** Drives the runtime by hand, without an engine: makes a history, and replays it. */
import { activity, workflow } from "@wovyr/sdk";
import { Execution, encodePayload, type HistoryFact, type Incoming, InstanceState, type Turn } from "@wovyr/sdk/internal";

const next = activity("bench-next", async (n: number) => n + 1);

const counting = workflow("bench-counting", async function* (steps: number) {
  let value = 0;
  while (value < steps) value = yield* next(value);
  return value;
});

const value = (data: unknown) => encodePayload(data, { limit: 1_000, what: "a value" });

function newExecution(): Execution {
  return new Execution({ definition: counting.definition, tenant: "default", run: "bench", newRunId: () => "unused" });
}

function untilIdle(execution: Execution): Promise<void> | undefined {
  if (!execution.busy) return undefined;
  return new Promise((resolve) => {
    execution.onIdle = resolve;
  });
}

/** The history of a run of so many sequential steps that it has `events` events and still waits for one more. */
export async function makeHistory(events: number): Promise<Turn[]> {
  const execution = newExecution();
  const turns: Turn[] = [];
  let seq = 1;
  const turn = async (fact: Incoming) => {
    execution.beginTurn(seq);
    execution.deliver(fact);
    await untilIdle(execution);
    const facts: HistoryFact[] = execution.takeFacts();
    execution.endTurn();
    facts.push(...execution.takeFacts());
    turns.push({ seq, at: 1_700_000_000_000 + seq, node: "bench", events: facts });
    seq += facts.length;
    return facts;
  };
  let made = await turn({
    type: "InstanceStarted",
    id: "bench",
    workflow: "bench-counting",
    version: counting.definition.version,
    input: value(events),
    seed: "0".repeat(32),
    correlationId: "bench",
  });
  for (let done = 1; seq <= events; done += 1) {
    const scheduled = made.find((fact) => fact.type === "ActivityScheduled");
    if (scheduled === undefined) throw new Error("the workflow asked for no further step");
    made = await turn({ type: "ActivityCompleted", effect: scheduled.effect, attempt: 1, output: value(done) });
  }
  return turns;
}

/** Replays all of it, as the engine does when it loads a run. */
export async function replay(turns: readonly Turn[]): Promise<void> {
  const execution = newExecution();
  const state = new InstanceState();
  for (const turn of turns) {
    execution.beginReplay(turn);
    while (execution.replayNext()) await untilIdle(execution);
    if (execution.broken !== undefined) throw execution.broken;
    execution.endReplay();
    state.apply(turn);
  }
}

export const eventsOf = (turns: readonly Turn[]): number => turns.reduce((sum, turn) => sum + turn.events.length, 0);
