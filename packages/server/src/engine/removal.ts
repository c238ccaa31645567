/**
 * The end of closed runs: on request, and when their time is over.
 *
 * 1. An open run is never removed.
 * 2. What is removed at once is bounded; what is left over is removed by the next call, or the next round.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import { type ClosedStatus, checkOptions, closedStatuses, type Duration, milliseconds } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { notOwner, ofOtherGroup } from "./ownership-errors.ts";
import { type InstanceKey, type InstanceRow, isOpenStatus, StoreUnavailableError } from "./ports/store.ts";
import type { Tenancy } from "./tenancy.ts";

const batchRuns = 200;

export class Removal {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  /** Removes the runs of an id, or one of them. Throws INSTANCE_OPEN, with nothing removed, when one of them is open. */
  async delete(id: string, options: { readonly runId?: string } = {}): Promise<{ readonly deleted: number }> {
    const engine = this.#tenancy.acting();
    const { store } = engine.options;
    const row = await this.#tenancy.row(engine, id, options.runId);
    const rows = options.runId === undefined ? await this.#runsOf(engine, id) : [row];
    const open = rows.find(({ status }) => isOpenStatus(status));
    if (open !== undefined)
      throw new ApiError(`Run "${open.run}" of "${id}" is open; cancel or terminate it first. Only closed runs are deleted.`, {
        code: "INSTANCE_OPEN",
      });
    const foreign = rows.find(({ shard }) => engine.ownership.epochOf(shard) === undefined);
    if (foreign !== undefined)
      throw engine.ownership.members.has(foreign.shard) ? notOwner() : ofOtherGroup(`"${id}"`, engine.options.group);
    let deleted = 0;
    for (let first = 0; first < rows.length; first += batchRuns) deleted += await store.deleteRuns(rows.slice(first, first + batchRuns));
    return { deleted };
  }

  async #runsOf(engine: Engine, id: string): Promise<InstanceRow[]> {
    const rows: InstanceRow[] = [];
    for (;;) {
      const after = rows[rows.length - 1]?.run;
      const page = await engine.options.store.listInstances(
        this.#tenancy.tenant,
        { id },
        { ...(after !== undefined && { after }), limit: batchRuns },
      );
      rows.push(...page);
      if (page.length < batchRuns) return rows;
    }
  }
}

// ── retention ──────────────────────────────────────────────────────────────────────────────────────────────

/** How long closed runs are kept: one time for all, or one for each status with `default` for the others. A status without a time is kept for ever. */
export type RetentionOptions =
  | Duration
  | ({ readonly default?: Duration | undefined } & { readonly [Status in ClosedStatus]?: Duration | undefined });

/** Milliseconds after its end, by status. */
export type RetentionTimes = ReadonlyMap<string, number>;

/** Throws INVALID_OPTION or INVALID_DURATION. */
export function retentionTimes(options: RetentionOptions): RetentionTimes {
  if (typeof options !== "object") return new Map(closedStatuses.map((status) => [status, positive(options, "retention")]));
  checkOptions(options, ["default", ...closedStatuses], "retention");
  const times = new Map<string, number>();
  for (const status of closedStatuses) {
    const given = options[status] === undefined ? "default" : status;
    const time = options[given];
    if (time !== undefined) times.set(status, positive(time, `retention.${given}`));
  }
  return times;
}

function positive(time: Duration, what: string): number {
  const length = milliseconds(time, what);
  if (length > 0) return length;
  throw new WovyrError(`${what} must be longer than nothing: results have to be there for those who wait for them`, {
    code: "INVALID_OPTION",
  });
}

/** Removes this node's closed runs whose time is over. */
export class Retention {
  readonly #engine: Engine;
  readonly #times: RetentionTimes;
  #running = false;

  constructor(engine: Engine, times: RetentionTimes) {
    this.#engine = engine;
    this.#times = times;
  }

  /** One round, unless one is under way; ends early when this node may not act any more. */
  async sweep(): Promise<void> {
    if (this.#running || this.#times.size === 0) return;
    this.#running = true;
    try {
      await this.#round();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) this.#engine.options.log.warn("old runs could not be removed", { error });
    } finally {
      this.#running = false;
    }
  }

  async #round(): Promise<void> {
    const { store } = this.#engine.options;
    const now = this.#engine.now();
    const shortest = Math.min(...this.#times.values());
    for (let after: InstanceKey | undefined; this.#engine.ownership.holds && !this.#engine.closing; ) {
      const page = await store.listClosedBefore(now - shortest, { ...(after !== undefined && { after }), limit: batchRuns });
      const over = page.filter((row) => this.#isOver(row, now));
      if (over.length > 0) await store.deleteRuns(over);
      after = page[page.length - 1];
      if (page.length < batchRuns) return;
    }
  }

  #isOver({ shard, status, closedAt }: InstanceRow, now: number): boolean {
    const time = this.#times.get(status);
    return time !== undefined && closedAt !== undefined && closedAt < now - time && this.#engine.ownership.epochOf(shard) !== undefined;
  }
}
