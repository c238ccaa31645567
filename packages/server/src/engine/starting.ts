/**
 * Starting instances.
 *
 * 1. A start is answered when its first turn is durable.
 * 2. The same key with the same request is one start, however often it is asked for and from how many callers at once.
 */
import { ApiError } from "@wovyr/sdk";
import type { BatchItem, ClosedResult, Operations, StartRequest, StartResponse, Status, WorkflowDefinition } from "@wovyr/sdk/internal";
import { replacement, replaceStart } from "./debouncing.ts";
import type { Engine } from "./engine.ts";
import { type Mail, mailIdentity } from "./mail.ts";
import { type InstanceRow, StoreUnavailableError } from "./ports/store.ts";
import { closedResult, isClosedResult } from "./results.ts";
import {
  eventKey,
  instanceExists,
  newStart,
  placeIdOf,
  type Start,
  StartRefused,
  startEvent,
  startedRunGone,
  startKeyConflict,
} from "./start.ts";
import type { Tenancy } from "./tenancy.ts";
import { statusOf } from "./views.ts";

export const maxBatch = 1_000;
/** How long a start waits for the end of the singleton that it has cancelled, in milliseconds. */
const singletonPatience = 4_000;

/** How the run that was started ended; another one may go on from it. */
type FirstResult = ReturnType<typeof closedResult>;

/** What is asked of runs that are there already, and may be another node's. */
type Elsewhere = Pick<Operations, "result" | "sendEvent" | "cancel">;

export class Starting {
  readonly #tenancy: Tenancy;
  readonly #anywhere: () => Elsewhere;
  readonly #startsInFlight: Map<string, Promise<StartResponse>>;

  /** `anywhere` reaches runs that are there already; `startsInFlight` is shared by all tenants. */
  constructor(tenancy: Tenancy, anywhere: () => Elsewhere, startsInFlight: Map<string, Promise<StartResponse>>) {
    this.#tenancy = tenancy;
    this.#anywhere = anywhere;
    this.#startsInFlight = startsInFlight;
  }

  async start(request: StartRequest): Promise<StartResponse> {
    const key = request.idempotencyKey;
    if (key === undefined) return this.#startOnce(request, this.#busyFrom());
    const inFlight = JSON.stringify([this.#tenancy.tenant, request.workflow, key]);
    const running = this.#startsInFlight.get(inFlight);
    if (running !== undefined) {
      await running.catch(() => {});
      return this.start(request);
    }
    const started = this.#startOnce(request, this.#busyFrom());
    this.#startsInFlight.set(inFlight, started);
    try {
      return await started;
    } finally {
      this.#startsInFlight.delete(inFlight);
    }
  }

  /** Until when a start waits for the end of singletons whose places it takes. */
  #busyFrom(): number {
    return this.#tenancy.engine().now() + singletonPatience;
  }

  async startBatch(requests: readonly StartRequest[]): Promise<readonly BatchItem[]> {
    if (requests.length > maxBatch)
      throw new ApiError(`A batch holds at most ${maxBatch} starts; this one has ${requests.length}.`, { code: "MALFORMED_REQUEST" });
    const item = (value: StartResponse): BatchItem => ({ ok: true, value });
    return Promise.all(
      requests.map((request) =>
        this.start(request).then(item, (error) => ({
          ok: false as const,
          error,
        })),
      ),
    );
  }

  async #startOnce(request: StartRequest, busyFrom: number): Promise<StartResponse> {
    const engine = this.#tenancy.acting();
    const refusal = engine.admission.refusal;
    if (refusal !== undefined) throw refusal;
    const definition = engine.options.registry.forStart(request.workflow, request.version);
    const start = this.#startOf(engine, definition, request);
    const { id, run } = start.identity;
    const event = startEvent(definition, request, { newId: () => engine.ids.run(), limit: engine.options.limits.execution.payload });
    const also: Mail[] = event === undefined ? [] : [{ fact: event }];
    const repeated = await this.#madeElsewhere(engine, start, request);
    if (repeated !== undefined) return repeated;
    if (
      (request.id !== undefined || definition.singleton !== undefined) &&
      engine.table.open(this.#tenancy.tenant, id) !== undefined &&
      start.create.startKey === undefined
    )
      return this.#taken(engine, definition, start, request, busyFrom, () => this.#startOnce(request, busyFrom));
    const wait = request.wait ?? 0;
    const result = wait > 0 ? this.#resultOf(engine, start, wait, request.signal) : undefined;
    let status: Status = "Running";
    try {
      await new Promise<void>((resolve, reject) => {
        const accepted = () => {
          status = engine.table.get(run)?.state.status ?? status;
          resolve();
        };
        engine.startInstance(start, { accepted, refused: reject }, also);
      });
    } catch (error) {
      result?.giveUp();
      if (error instanceof StartRefused)
        return this.#taken(engine, definition, start, request, busyFrom, () => this.#startOnce(request, busyFrom));
      throw error;
    }
    const first = await result?.promise;
    const closed = first?.continuedTo !== undefined ? await this.#closedIn(id, run, wait, request.signal) : first;
    return {
      id,
      runId: run,
      status: closed?.status ?? status,
      created: true,
      replayed: false,
      ...(closed !== undefined && { result: closed }),
    };
  }

  /** With an id of its own a start is where its id is, and its key with it: over several databases another start may have used the key elsewhere. */
  async #madeElsewhere(engine: Engine, { identity, create }: Start, request: StartRequest): Promise<StartResponse | undefined> {
    const { store } = engine.options;
    const { startKey } = create;
    if (store.databases === undefined || request.id === undefined || startKey === undefined) return undefined;
    const known = await store.findStartKey(identity.tenant, identity.workflow, startKey.key, identity.shard).catch((error: unknown) => {
      // It is no reason not to start: the key is written with the run.
      if (!(error instanceof StoreUnavailableError)) throw error;
      return undefined;
    });
    return known && this.#again(engine, known, startKey, request);
  }

  /** Makes a run durable for whoever will own it: its start is in its inbox. */
  async startWithoutOwner(request: StartRequest, busyFrom = this.#busyFrom()): Promise<StartResponse> {
    const engine = this.#tenancy.engine();
    const { registry, store, clock, limits } = engine.options;
    const definition = registry.forStart(request.workflow, request.version);
    const start = this.#startOf(engine, definition, request);
    const event = startEvent(definition, request, { newId: () => engine.ids.run(), limit: limits.execution.payload });
    const { id, run, shard } = start.identity;
    const { workflow, version, correlationId = id, startKey } = start.create;
    const outcome = await store.importRun({
      row: {
        tenant: this.#tenancy.tenant,
        run,
        id,
        shard,
        workflow,
        version,
        correlationId,
        status: "open",
        busy: false,
        tail: 0,
        createdAt: clock.now(),
      },
      attributes: {},
      turns: [],
      inbox: await Promise.all(
        [start.fact, ...(event === undefined ? [] : [event])].map(async (fact) => ({
          message: mailIdentity(fact),
          fact: await engine.rows.encodeFact(fact),
        })),
      ),
      ...(startKey !== undefined && { startKey }),
    });
    if (outcome !== "done")
      return this.#taken(engine, definition, start, request, busyFrom, () => this.startWithoutOwner(request, busyFrom));
    engine.wakeUps.arrived({ tenant: this.#tenancy.tenant, run, shard });
    return { id, runId: run, status: "Running", created: true, replayed: false };
  }

  /** The result of a chain of runs, if it comes in time. */
  async #closedIn(id: string, runId: string, wait: number, signal: AbortSignal | undefined): Promise<ClosedResult | undefined> {
    const result = await this.#anywhere().result(id, { runId, wait, ...(signal !== undefined && { signal }) });
    return isClosedResult(result) ? result : undefined;
  }

  #startOf(engine: Engine, definition: WorkflowDefinition, request: StartRequest): Start {
    const { tenant } = this.#tenancy;
    const { limits, clock } = engine.options;
    const run = this.#newRun(engine, definition, request);
    const making = { run, seed: engine.ids.seed(), now: clock.now(), limit: limits.execution.payload };
    const { create, fact } = newStart(definition, request, making);
    const { id, workflow, version, correlationId } = create;
    return { identity: { tenant, run, id, shard: engine.shardOf(tenant, id), workflow, version, correlationId }, create, fact };
  }

  /** Without an id of its own an instance has that of its run: one by which it is this node's, or where all starts of a debounce key are. */
  #newRun(engine: Engine, definition: WorkflowDefinition, request: StartRequest): string {
    const { tenant } = this.#tenancy;
    if (definition.debounce === undefined)
      return request.id === undefined ? engine.ids.ownRun(tenant, request.idempotencyKey) : engine.ids.run();
    const place = placeIdOf(definition, request, { limit: engine.options.limits.execution.payload, keyed: false });
    if (place === undefined) return engine.ids.run();
    const wanted = engine.shardOf(tenant, place);
    return engine.ids.runOn(tenant, (shard) => shard === wanted);
  }

  /** Waits for a run from before it is created, so that its end cannot be missed. */
  #resultOf(
    engine: Engine,
    start: Start,
    wait: number,
    signal: AbortSignal | undefined,
  ): { promise: Promise<FirstResult | undefined>; giveUp: () => void } {
    const { clock } = engine.options;
    const { id, run, shard } = start.identity;
    let giveUp = () => {};
    const promise = new Promise<FirstResult | undefined>((resolve) => {
      const end = (result: FirstResult | undefined) => {
        forget();
        cancelTimer();
        signal?.removeEventListener("abort", giveUp);
        resolve(result);
      };
      const forget = engine.waiters.add(
        run,
        { tell: (closing) => end(closedResult(id, run, closing)), giveUp: () => end(undefined) },
        shard,
      );
      const cancelTimer = clock.wakeAt(clock.now() + wait, () => end(undefined));
      giveUp = () => end(undefined);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp);
    });
    return { promise, giveUp: () => giveUp() };
  }

  /** An identity of the start is in use: answer a repeated request again, return the instance that is there, or say which it is. */
  async #taken(
    engine: Engine,
    definition: WorkflowDefinition,
    start: Start,
    request: StartRequest,
    busyFrom: number,
    again: () => Promise<StartResponse>,
  ): Promise<StartResponse> {
    const { store } = engine.options;
    const { id, workflow } = start.identity;
    const { startKey } = start.create;
    if (startKey !== undefined) {
      const known = await store.findStartKey(this.#tenancy.tenant, workflow, startKey.key, start.identity.shard);
      if (known !== undefined && definition.debounce !== undefined)
        return this.#replaced(engine, definition.debounce.period, start, known.run, request, again);
      if (known !== undefined) return this.#again(engine, known, startKey, request);
    }
    const open = await store.findInstance(this.#tenancy.tenant, id, start.identity.shard);
    if (open === undefined || open.closedAt !== undefined) {
      await engine.ownership.verify();
      const { unavailable } = engine;
      if (unavailable !== undefined) throw unavailable;
      // It closed meanwhile: the id is free. Or it is about to be written: its turn has to be made.
      await new Promise<void>((resolve) => engine.options.loop.immediate(resolve));
      return again();
    }
    if (request.event !== undefined && open.workflow === workflow) {
      const { name, payload } = request.event;
      const idempotencyKey = eventKey(request);
      const { replayed } = await this.#anywhere().sendEvent(id, name, payload, {
        runId: open.run,
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      });
      return { ...(await this.#existing(open, false, request)), replayed };
    }
    if (open.workflow === workflow) {
      const { onConflict = definition.singleton?.onConflict } = request;
      if (onConflict === "return" || onConflict === "skip") return this.#existing(open, false, request);
      if (onConflict === "cancel") return this.#inPlaceOf(engine, open, request, busyFrom, again);
    }
    throw instanceExists(id, open);
  }

  /** A debounced start takes the place of the one before it; where that one has begun it is the first of the next. */
  async #replaced(
    engine: Engine,
    period: number,
    start: Start,
    run: string,
    request: StartRequest,
    again: () => Promise<StartResponse>,
  ): Promise<StartResponse> {
    const { tenant } = this.#tenancy;
    const { store } = engine.options;
    const { shard, correlationId } = start.identity;
    const first = request.correlationId === undefined ? undefined : await store.getInstance({ tenant, run, shard });
    if (first?.status === "queued" && first.correlationId !== correlationId)
      throw new ApiError(
        `This start would take the place of run ${run}, whose correlationId is "${first.correlationId}" and stays: leave correlationId out, or pass the same.`,
        { code: "INVALID_OPTION" },
      );
    const message = request.idempotencyKey ?? `m-${engine.ids.run()}`;
    const replaced = await replaceStart(engine, { tenant, run, shard }, replacement(message, start.fact, period));
    const row = await store.getInstance({ tenant, run, shard });
    if (replaced !== undefined && row !== undefined) return { ...(await this.#existing(row, false, request)), replayed: replaced.replayed };
    await store.dropStartKey(tenant, start.identity.workflow, start.create.startKey?.key ?? "", run);
    return again();
  }

  /** A singleton is cancelled, and another one takes its place when it has ended. */
  async #inPlaceOf(
    engine: Engine,
    open: InstanceRow,
    request: StartRequest,
    busyFrom: number,
    again: () => Promise<StartResponse>,
  ): Promise<StartResponse> {
    const reason = "cancelled by a start of the same singleton, which takes its place";
    await this.#anywhere()
      .cancel(open.id, { runId: open.run, reason })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError && error.code === "INSTANCE_CLOSED")) throw error;
      });
    const { signal } = request;
    const ended = await this.#anywhere().result(open.id, {
      runId: open.run,
      wait: Math.max(0, busyFrom - engine.now()),
      ...(signal !== undefined && { signal }),
    });
    if (isClosedResult(ended)) return again();
    throw new ApiError(
      `The run ${open.run} of singleton "${open.id}" was cancelled and has not ended within ${singletonPatience / 1_000} s; try again.`,
      { code: "SINGLETON_BUSY", retryAfter: 1_000 },
    );
  }

  async #again(
    engine: Engine,
    known: { run: string; digest: string },
    startKey: { key: string; digest: string },
    request: StartRequest,
  ): Promise<StartResponse> {
    if (known.digest !== startKey.digest) throw startKeyConflict(request.workflow, startKey.key);
    const row = await engine.options.store.getInstance({
      tenant: this.#tenancy.tenant,
      run: known.run,
      shard: undefined,
    });
    if (row === undefined) throw startedRunGone(known.run);
    return this.#existing(row, true, request);
  }

  async #existing(row: InstanceRow, replayed: boolean, request: StartRequest): Promise<StartResponse> {
    const result = request.wait === undefined ? undefined : await this.#anywhere().result(row.id, { runId: row.run, wait: request.wait });
    const status = result?.status ?? statusOf(row);
    return {
      id: row.id,
      runId: row.run,
      status,
      created: replayed,
      replayed,
      ...(result !== undefined && isClosedResult(result) && { result }),
    };
  }
}
