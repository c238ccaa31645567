/**
 * What is asked of a run by somebody who waits for the answer: queries and updates.
 *
 * 1. A query sees only what is durable. It is never recorded. One that changes the run is refused, and what it changed is dropped from memory.
 * 2. An update is answered when its outcome is durable. The same key again is answered with the outcome that history holds.
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type Command,
  checkName,
  decodePayload,
  encodePayload,
  foldHistory,
  type HistoryFact,
  type Payload,
  queryChanged,
  type Reading,
  type UpdateResponse,
  viewOfFailure,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { Instance } from "./instance.ts";
import type { InstanceKey, InstanceRow, RunAddress } from "./ports/store.ts";
import { versionMissing } from "./version-missing.ts";

/** Runs of a chain in which the end of an update is looked for. */
const longestChain = 300;

export type UpdateEnd = Extract<Command, { type: "UpdateCompleted" | "UpdateFailed" }>;

type UpdateRequest = {
  readonly name: string;
  readonly input: unknown;
  readonly idempotencyKey: string | undefined;
  /** Milliseconds to wait for the outcome. */
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
};

/** Whoever waits for an update is listed under this. */
export const updateKey = (run: string, message: string) => `${run}\u0000${message}`;

export class Dialogue {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  // ── queries ────────────────────────────────────────────────────────────────────────────────────────────

  async query(row: InstanceRow, name: string, input: unknown): Promise<unknown> {
    checkName(name, "the name of a query");
    const { payload: limit } = this.#engine.options.limits.execution;
    const encoded = encodePayload(input, { limit, what: `input of query "${name}"` });
    if (row.closedAt !== undefined)
      return decodePayload(unchanging(name, ask(await this.#engine.revival.replayed(row), name, encoded, limit)));
    const answer = await this.inspect(row, (instance) => {
      const answer = ask(instance, name, encoded, limit);
      // One that was replayed apart, for want of room, is kept by nobody.
      if (answer.changed && this.#engine.table.get(row.run) === instance) this.#engine.reload(instance);
      return unchanging(name, answer);
    });
    return decodePayload(answer);
  }

  /** Calls `look` with the run in memory, at a moment at which all of it is durable. */
  async inspect<T>(row: InstanceRow, look: (instance: Instance) => T): Promise<T> {
    for (;;) {
      await this.#engine.revival.load(row);
      const { unableToLoad } = this.#engine;
      if (unableToLoad !== undefined) throw unableToLoad;
      const instance = this.#engine.table.get(row.run);
      // There was no room to keep it.
      if (instance === undefined) return look(await this.#engine.revival.replayed(row));
      if (instance.phase === "idle" || instance.phase === "queued") return look(instance);
      await instance.settled();
    }
  }

  // ── updates ────────────────────────────────────────────────────────────────────────────────────────────

  async update({ tenant, run, id }: InstanceKey & { readonly id: string }, request: UpdateRequest): Promise<UpdateResponse> {
    const { name, idempotencyKey, wait, signal } = request;
    const engine = this.#engine;
    checkName(name, "the name of an update");
    const message = idempotencyKey ?? `u-${engine.ids.run()}`;
    const { payload: limit } = engine.options.limits.execution;
    const input = encodePayload(request.input, { limit, what: `input of update "${name}"` });
    const about = { id, runId: run, updateId: message };
    const shard = engine.shardOf(tenant, id);
    let giveUp = () => {};
    const ended = new Promise<UpdateEnd | undefined>((resolve, reject) => {
      giveUp = engine.updates.add(updateKey(run, message), { tell: resolve, giveUp: reject }, shard);
    });
    // It may be given up before anybody looks.
    ended.catch(() => {});
    try {
      const replayed = await new Promise<boolean>((accepted, refused) =>
        engine.deliver({ tenant, run, shard }, { fact: { type: "UpdateRequested", message, name, input }, receipt: { accepted, refused } }),
      );
      const known = replayed ? await this.#endOf({ tenant, run, shard }, message) : undefined;
      const end = known ?? (await this.#within(ended, wait, signal));
      if (end === undefined) return { ...about, status: "Open" };
      return end.type === "UpdateCompleted"
        ? { ...about, status: "Completed", output: decodePayload(end.output) }
        : { ...about, status: "Failed", failure: viewOfFailure(end.failure) };
    } finally {
      giveUp();
    }
  }

  async #within(ended: Promise<UpdateEnd | undefined>, wait: number, signal: AbortSignal | undefined): Promise<UpdateEnd | undefined> {
    const { clock } = this.#engine.options;
    let cancel = () => {};
    const late = new Promise<undefined>((resolve) => {
      cancel = clock.wakeAt(clock.now() + wait, () => resolve(undefined));
      signal?.addEventListener("abort", () => resolve(undefined), { once: true });
      if (signal?.aborted === true) resolve(undefined);
    });
    try {
      return await Promise.race([ended, late]);
    } finally {
      cancel();
    }
  }

  /** What history holds of an update's end: that of the last run that knows of it, or of those that it goes on from. */
  async #endOf({ tenant, run, shard }: RunAddress, message: string): Promise<UpdateEnd | undefined> {
    let before: string | undefined = await this.#lastRun({ tenant, run, shard });
    for (let runs = 0; before !== undefined && runs < longestChain; runs++) {
      const facts = await this.#factsOf({ tenant, run: before, shard });
      const end = facts.find(
        (fact): fact is UpdateEnd => (fact.type === "UpdateCompleted" || fact.type === "UpdateFailed") && fact.message === message,
      );
      if (end !== undefined) return end;
      // It is still at work.
      if (facts.some((fact) => fact.type === "UpdateRequested" && fact.message === message)) return undefined;
      const start = facts.find((fact) => fact.type === "InstanceStarted");
      const forked = facts.findLast((fact) => fact.type === "Forked");
      before = forked?.from.run ?? start?.continuedFrom ?? start?.retry?.of;
    }
    return undefined;
  }

  /** The run that what is said to this one comes to in the end. */
  async #lastRun({ tenant, run, shard }: RunAddress): Promise<string> {
    let last = run;
    for (let runs = 0; runs < longestChain; runs++) {
      const { successor } = foldHistory(await this.#engine.revival.historyOf({ tenant, run: last, shard }));
      if (successor === undefined) break;
      last = successor;
    }
    return last;
  }

  async #factsOf(key: RunAddress): Promise<readonly HistoryFact[]> {
    return (await this.#engine.revival.historyOf(key)).flatMap((turn) => turn.events);
  }
}

/** Throws when the query changed the run. */
function unchanging(name: string, answer: Reading<Payload>): Payload {
  if (answer.changed) throw queryChanged(name);
  return answer.value;
}

function ask(instance: Instance, name: string, input: Payload, limit: number): Reading<Payload> {
  const { execution, state, identity } = instance;
  if (execution === undefined)
    throw state.parked === undefined
      ? versionMissing(identity)
      : new WovyrError(`The run is parked and its code cannot be asked: ${state.parked.message}`, { code: "INSTANCE_PARKED" });
  return execution.reading(`query "${name}"`, () => execution.handlers.query(name, input, limit));
}
