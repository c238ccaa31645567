/**
 * How runs ended, and waiting for it.
 *
 * 1. A chain of runs that went on as new ones, were tried again, or whose place another one took, has one result: the last one's.
 * 2. That holds of a run that was removed as well, as long as a later one of its chain is there.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type ClosedResult,
  type Closing,
  closedStatus,
  decodePayload,
  isClosed,
  isClosingEvent,
  type ResultResponse,
  viewOfFailure,
} from "@wovyr/sdk/internal";
import { restOfChain } from "./chain.ts";
import type { Engine } from "./engine.ts";
import type { InstanceRow } from "./ports/store.ts";
import type { Tenancy } from "./tenancy.ts";
import { statusOf } from "./views.ts";

export class Results {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  /** Resolves at once for a closed run, else when it closes or after `wait` milliseconds. */
  async result(
    id: string,
    options: {
      readonly runId?: string;
      readonly wait?: number;
      readonly signal?: AbortSignal;
    } = {},
  ): Promise<ResultResponse> {
    const engine = this.#tenancy.engine();
    const known = options.runId === undefined ? engine.table.open(this.#tenancy.tenant, id) : engine.table.get(options.runId);
    const inMemory =
      known !== undefined && known.identity.tenant === this.#tenancy.tenant && known.identity.id === id && known.create === undefined
        ? known
        : undefined;
    const run = inMemory?.identity.run ?? (await this.#row(engine, id, options.runId)).run;
    const { clock } = engine.options;
    const deadline = clock.now() + (options.wait ?? 0);
    let result = await this.#resultOfRun(engine, id, run, options.wait ?? 0, options.signal, inMemory !== undefined);
    while (result.continuedTo !== undefined) {
      const next = await this.#row(engine, id, result.continuedTo);
      result = await this.#resultOfRun(engine, id, next.run, Math.max(0, deadline - clock.now()), options.signal, false);
    }
    return result;
  }

  /** A run of an instance, or one that goes on where that was. Throws INSTANCE_NOT_FOUND. */
  async #row(engine: Engine, id: string, run: string | undefined): Promise<InstanceRow> {
    try {
      return await this.#tenancy.row(engine, id, run);
    } catch (error) {
      if (run === undefined || !(error instanceof ApiError) || error.code !== "INSTANCE_NOT_FOUND") throw error;
      const rest = await restOfChain(engine, this.#tenancy.tenant, id, run);
      if (rest === undefined) throw error;
      return rest;
    }
  }

  async #resultOfRun(
    engine: Engine,
    id: string,
    run: string,
    wait: number,
    signal: AbortSignal | undefined,
    inMemory: boolean,
  ): Promise<LinkedResult> {
    if (!inMemory || wait <= 0) {
      const now = await this.#resultNow(engine, id, run);
      if (isClosedResult(now) || wait <= 0) return now;
    }
    return this.#awaitResult(engine, id, run, wait, signal, !inMemory);
  }

  #awaitResult(
    engine: Engine,
    id: string,
    run: string,
    wait: number,
    signal: AbortSignal | undefined,
    lookAgain: boolean,
  ): Promise<LinkedResult> {
    const { clock } = engine.options;
    if (engine.closing) return Promise.reject(engine.unavailable);
    const shard = engine.shardOf(this.#tenancy.tenant, id);
    // Nobody would tell.
    if (!engine.ownership.owns(shard))
      return Promise.reject(new ApiError(`Instance "${id}" belongs to another orchestrator; ask again.`, { code: "NOT_OWNER" }));
    return new Promise((resolve, reject) => {
      const forget = engine.waiters.add(
        run,
        {
          tell: (closing) => end(() => resolve(closedResult(id, run, closing))),
          giveUp: (reason) => end(() => reject(reason)),
        },
        shard,
      );
      const cancelTimer = clock.wakeAt(clock.now() + wait, () => end(() => this.#resultNow(engine, id, run).then(resolve, reject)));
      const aborted = () => end(() => reject(signal?.reason));
      const end = (then: () => void) => {
        forget();
        cancelTimer();
        signal?.removeEventListener("abort", aborted);
        then();
      };
      if (signal?.aborted === true) aborted();
      else signal?.addEventListener("abort", aborted);
      // It may have closed between the first look and the registration.
      if (lookAgain)
        this.#resultNow(engine, id, run).then(
          (now) => {
            if (isClosedResult(now) || now.runId !== run) end(() => resolve(now));
          },
          (error) => end(() => reject(error)),
        );
    });
  }

  async #resultNow(engine: Engine, id: string, run: string): Promise<LinkedResult> {
    const row = await this.#row(engine, id, run);
    const status = statusOf(row);
    if (!isClosed(status)) return { id, runId: row.run, status };
    const last = await engine.options.store.readLastTurn(row);
    const turn = last === undefined ? undefined : await engine.rows.decode(last);
    const closing = turn?.events.findLast((fact): fact is Closing => isClosingEvent(fact.type));
    if (closing === undefined) throw new WovyrError(`run ${row.run} is closed, but its history does not say how`, { code: "INTERNAL" });
    return closedResult(id, row.run, closing);
  }
}

/** The result of one run, with the run that goes on from it or takes its place. */
type LinkedResult = ResultResponse & { readonly continuedTo?: string };
export type LinkedClosedResult = ClosedResult & LinkedResult;

export function closedResult(id: string, run: string, closing: Closing): ClosedResult & { readonly continuedTo?: string } {
  switch (closing.type) {
    case "InstanceContinuedAsNew":
      return { id, runId: run, status: "ContinuedAsNew", continuedTo: closing.run };
    case "InstanceCompleted":
      return {
        id,
        runId: run,
        status: "Completed",
        output: decodePayload(closing.output),
      };
    default:
      return {
        id,
        runId: run,
        status: closedStatus[closing.type],
        failure: viewOfFailure(closing.failure),
        ...("compensation" in closing && { compensation: viewOfFailure(closing.compensation) }),
        ...("run" in closing && closing.run !== undefined && { continuedTo: closing.run }),
        ...("resetTo" in closing && closing.resetTo !== undefined && { continuedTo: closing.resetTo }),
      };
  }
}

export const isClosedResult = (result: ResultResponse): result is ClosedResult => isClosed(result.status);
