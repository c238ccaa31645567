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
import type { Instance } from "./instance.ts";
import { pause } from "./pause.ts";
import type { InstanceRow } from "./ports/store.ts";
import { strangerPause } from "./stream.ts";
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
    const { clock } = engine.options;
    const deadline = clock.now() + (options.wait ?? 0);
    let result: LinkedResult;
    if (known !== undefined && this.#willTell(known, id) && options.wait !== undefined && options.wait > 0)
      result = await this.#awaitResult(engine, id, known.identity.run, options.wait, options.signal, false);
    else result = await this.#resultOfRow(engine, await this.#row(engine, id, options.runId), options.wait ?? 0, options.signal);
    while (result.continuedTo !== undefined) {
      const next = await this.#row(engine, id, result.continuedTo);
      result = await this.#resultOfRow(engine, next, Math.max(0, deadline - clock.now()), options.signal);
    }
    return result;
  }

  /** Whether a run in memory is the one that is asked about, and its end is still to be told. */
  #willTell({ identity, create, state }: Instance, id: string): boolean {
    return identity.tenant === this.#tenancy.tenant && identity.id === id && create === undefined && !state.closed;
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

  async #resultOfRow(engine: Engine, row: InstanceRow, wait: number, signal: AbortSignal | undefined): Promise<LinkedResult> {
    const { id, run, shard } = row;
    const now = await this.#resultIn(engine, row);
    if (isClosedResult(now) || wait <= 0) return now;
    if (shard !== engine.shardOf(this.#tenancy.tenant, id)) return this.#watchedResult(engine, id, run, wait, signal);
    return this.#awaitResult(engine, id, run, wait, signal, true);
  }

  /** Of a run of another group, whose end nobody tells here: the store is looked at. */
  async #watchedResult(engine: Engine, id: string, run: string, wait: number, signal: AbortSignal | undefined): Promise<LinkedResult> {
    const { clock } = engine.options;
    const deadline = clock.now() + wait;
    for (;;) {
      await pause(clock, Math.max(0, Math.min(strangerPause, deadline - clock.now())), signal);
      signal?.throwIfAborted();
      if (engine.unavailable !== undefined) throw engine.unavailable;
      const now = await this.#resultNow(engine, id, run);
      if (isClosedResult(now) || clock.now() >= deadline) return now;
    }
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
    return this.#resultIn(engine, await this.#row(engine, id, run));
  }

  async #resultIn(engine: Engine, row: InstanceRow): Promise<LinkedResult> {
    const { id } = row;
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
