/**
 * Outcomes of transactional steps, as the engine sees them.
 *
 * 1. Before a run records that a step failed for good, or that it no longer waits for it, a tombstone is put: from then on no attempt of the step can commit.
 *    When an outcome is there already the step was done, and that is what the run is told.
 * 2. What does not work is tried again, as long as this node owns the run.
 */
import { WovyrError } from "@wovyr/sdk";
import { type ActivityTransaction, ApiError, type EffectId, type Incoming, type OpenActivity, type Payload } from "@wovyr/sdk/internal";
import { type Attempt, attemptKey } from "./attempt.ts";
import type { HistoryRows } from "./history-row.ts";
import type { Ownership } from "./ownership.ts";
import { pause } from "./pause.ts";
import type { Clock } from "./ports/clock.ts";
import type { EngineLog } from "./ports/log.ts";
import { type RunAddress, type Store, StoreUnavailableError } from "./ports/store.ts";

export type StepOutcomesOptions = {
  readonly store: Store;
  readonly rows: HistoryRows;
  readonly clock: Clock;
  readonly log: EngineLog;
  readonly ownership: Ownership;
  /** Whether the engine has ended. */
  readonly closed: () => boolean;
};

/** What is known of an open activity. */
export type StepState = Pick<OpenActivity, "state" | "attempt">;

/** Milliseconds. */
const retryPause = 250;

export class StepOutcomes {
  readonly #options: StepOutcomesOptions;
  /** Tombstones that are being put: how many, by attempt key. */
  readonly #pending = new Map<string, number>();

  constructor(options: StepOutcomesOptions) {
    this.#options = options;
  }

  /** Whether no tombstone is being put. */
  get idle(): boolean {
    return this.#pending.size === 0;
  }

  /** Whether what becomes of an effect is being decided. */
  has(run: string, effect: EffectId): boolean {
    return this.#pending.size > 0 && this.#pending.has(attemptKey(run, effect));
  }

  /** Runs one attempt in a transaction; resolves with the outcome, of this attempt or of one before. */
  async run(attempt: Attempt, signal: AbortSignal, work: (tx: ActivityTransaction) => Promise<Payload>): Promise<Payload> {
    const { store, rows, clock, ownership } = this.#options;
    const { tenant, run, effect, shard, activity } = attempt;
    if (store.transactions === undefined) throw unsupported(activity.name, store.kind);
    const epoch = ownership.epochOf(shard);
    if (epoch === undefined) throw notOwner(activity.name);
    const end = await store.transactions.run({
      tenant,
      run,
      effect,
      shard,
      epoch,
      now: () => clock.now(),
      signal,
      work: async (tx) => rows.seal(await work(tx)),
    });
    if (end.kind === "committed") return rows.open(end.outcome);
    if (end.kind === "notOwner") throw notOwner(activity.name);
    this.#options.log.warn("an attempt of a transactional activity came too late, and is refused", {
      activity: activity.name,
      attempt: activity.attempt,
      run,
    });
    throw new WovyrError(
      `activity "${activity.name}" was given up before this attempt could commit: the one before it had failed for good, or was no longer wanted. Nothing of it is written.`,
      { code: "STEP_GIVEN_UP" },
    );
  }

  /** Puts a tombstone; resolves with the outcome when one is there already. Rejects when this node can do no more for the run. */
  async giveUp({ tenant, run, shard }: RunAddress, effect: EffectId): Promise<Payload | undefined> {
    const { store, rows, clock, log } = this.#options;
    const key = attemptKey(run, effect);
    this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1);
    try {
      for (;;) {
        try {
          const { outcome } = await store.saveStepOutcome({ tenant, run, shard, effect, at: clock.now(), outcome: null });
          return outcome === null ? undefined : await rows.open(outcome);
        } catch (error) {
          if (this.#isOver) throw error;
          if (!(error instanceof StoreUnavailableError))
            log.error("a transactional step could not be given up; it is tried again", { run, effect, error });
          await pause(clock, retryPause);
          if (this.#isOver) throw error;
        }
      }
    } finally {
      const left = (this.#pending.get(key) ?? 1) - 1;
      if (left === 0) this.#pending.delete(key);
      else this.#pending.set(key, left);
    }
  }

  get #isOver(): boolean {
    return this.#options.closed() || !this.#options.ownership.holds;
  }
}

/** What a run is told of a step that was done, as its activity stood when that was found out. */
export function completionOf(effect: EffectId, { state, attempt }: StepState, output: Payload): Incoming[] {
  if (state === "Paused") {
    const note = "an attempt of this transactional step had committed; its outcome was found";
    const decided = { type: "ActivityDecided", effect, attempt, decision: "resolve", output, note } as const;
    return [{ ...decided, message: foundOutcome(decided) }];
  }
  const which = state === "Retrying" ? attempt + 1 : attempt;
  const completed: Incoming = { type: "ActivityCompleted", effect, attempt: which, output };
  return state === "Running" ? [completed] : [{ type: "AttemptStarted", effect, attempt: which }, completed];
}

/** The name of the decision that the engine takes itself. */
export const foundOutcome = ({ effect, attempt }: { readonly effect: EffectId; readonly attempt: number }): string =>
  `outcome of ${effect}:${attempt}`;

const notOwner = (name: string) =>
  new ApiError(`This node no longer owns the run; activity "${name}" was rolled back.`, { code: "NOT_OWNER" });

function unsupported(name: string, kind: string): WovyrError {
  return new WovyrError(
    `activity "${name}" is transactional, and the store in use (${kind}) has no transactions to give: use postgresStore(url), or semantics: "atLeastOnce" and \`ctx.idempotencyKey\``,
    { code: "TRANSACTIONS_UNSUPPORTED" },
  );
}
