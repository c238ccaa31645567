/** Drives one execution by hand: facts in, commands out, no engine. */
import type { AnyWorkflow } from "@wovyr/sdk";
import { Execution, encodePayload, type HistoryFact, type Incoming, type Turn } from "@wovyr/sdk/internal";

export const started = (input?: unknown): Incoming => ({
  type: "InstanceStarted",
  id: "i",
  workflow: "w",
  version: "1",
  input: encodePayload(input),
  seed: "000102030405060708090a0b0c0d0e0f",
});

export class Drive {
  readonly execution: Execution;
  readonly turns: Turn[] = [];
  #seq = 1;

  constructor(workflow: AnyWorkflow) {
    this.execution = new Execution({ definition: workflow.definition, tenant: "t", run: "r", newRunId: () => "child" });
  }

  /** Makes one turn of what came in; returns all its facts. */
  async turn(at: number, ...incoming: Incoming[]): Promise<readonly HistoryFact[]> {
    this.execution.beginTurn(at);
    const facts: HistoryFact[] = [];
    for (const fact of incoming) {
      this.execution.deliver(fact);
      await this.#idle();
      facts.push(...this.execution.takeFacts());
    }
    this.execution.endTurn();
    facts.push(...this.execution.takeFacts());
    this.turns.push({ seq: this.#seq, at, node: "n", events: facts });
    this.#seq += facts.length;
    return facts;
  }

  async replay(turns: readonly Turn[]): Promise<Error | undefined> {
    for (const turn of turns) {
      this.execution.beginReplay(turn);
      while (this.execution.replayNext()) await this.#idle();
      if (this.execution.broken !== undefined) return this.execution.broken;
      this.execution.endReplay();
    }
    return undefined;
  }

  #idle(): Promise<void> {
    if (!this.execution.busy) return Promise.resolve();
    return new Promise((resolve) => {
      this.execution.onIdle = resolve;
      queueMicrotask(() =>
        process.nextTick(() => {
          if (this.execution.busy) this.execution.stuck();
          resolve();
        }),
      );
    });
  }
}
