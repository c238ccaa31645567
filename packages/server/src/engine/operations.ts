/** The engine's answer to `Operations`, bound to one tenant. */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type BatchItem,
  type CancelMode,
  type ClosedResult,
  type Closing,
  checkAttributes,
  checkName,
  type Delivered,
  decodePayload,
  digest,
  encodePayload,
  type HistoryPage,
  type HistoryRequest,
  type Incoming,
  type InstanceDescription,
  type InstanceSummary,
  isClosed,
  jsonSchemaOf,
  type ListRequest,
  type Operations,
  type Page,
  parse,
  type ResultResponse,
  type RunGraph,
  type StartRequest,
  type StartResponse,
  type Status,
  type StreamItem,
  type Turn,
  turnView,
  type UpdateResponse,
  viewOfFailure,
  type WorkflowDefinition,
  type WorkflowDetails,
  type WorkflowInfo,
} from "@wovyr/sdk/internal";
import { staticGraph } from "../graph/static-graph.ts";
import { cursorAfter, runOfCursor } from "./cursor.ts";
import type { Engine } from "./engine.ts";
import type { Mail } from "./mail.ts";
import type { InstanceRow, ListFilter, StoredStatus } from "./ports/store.ts";
import { type Start, StartRefused } from "./start.ts";
import { followRun } from "./stream.ts";
import { descriptionOf, runGraphOf, statusOf, summaryOf } from "./views.ts";

const maxBatch = 1_000;
const maxPage = 500;
const defaultPage = 50;
const maxEvents = 1_000;
const defaultEvents = 500;
const turnsPerRead = 500;
const maxPagesRead = 20;
const defaultUpdateWait = 30_000;

export class LocalOperations implements Operations {
  readonly #tenant: string;
  readonly #engine: () => Engine;
  readonly #startsInFlight: Map<string, Promise<StartResponse>>;

  /** `engine` throws when there is none yet. `startsInFlight` is shared by all tenants' operations. */
  constructor(tenant: string, engine: () => Engine, startsInFlight: Map<string, Promise<StartResponse>>) {
    this.#tenant = tenant;
    this.#engine = engine;
    this.#startsInFlight = startsInFlight;
  }

  // ── workflows ──────────────────────────────────────────────────────────────────────────────────────────

  async listWorkflows(): Promise<readonly WorkflowInfo[]> {
    const { registry } = this.#engine().options;
    return registry.names.map((name) => infoOf(registry.versions(name)));
  }

  async getWorkflow(name: string): Promise<WorkflowDetails> {
    const versions = this.#engine().options.registry.versions(name);
    const graph = Object.fromEntries(versions.map((definition) => [definition.version, staticGraph(definition)]));
    return { ...infoOf(versions), graph };
  }

  // ── starting ───────────────────────────────────────────────────────────────────────────────────────────

  async start(request: StartRequest): Promise<StartResponse> {
    const key = request.idempotencyKey;
    if (key === undefined) return this.#startOnce(request);
    const inFlight = JSON.stringify([this.#tenant, request.workflow, key]);
    const running = this.#startsInFlight.get(inFlight);
    if (running !== undefined) {
      await running.catch(() => {});
      return this.start(request);
    }
    const started = this.#startOnce(request);
    this.#startsInFlight.set(inFlight, started);
    try {
      return await started;
    } finally {
      this.#startsInFlight.delete(inFlight);
    }
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

  async #startOnce(request: StartRequest): Promise<StartResponse> {
    const engine = this.#acting();
    const refusal = engine.overloaded;
    if (refusal !== undefined) throw refusal;
    const definition = engine.options.registry.forStart(request.workflow, request.version);
    const start = this.#startOf(engine, definition, request);
    const { id, run } = start.identity;
    if (request.id !== undefined && engine.table.open(this.#tenant, id) !== undefined && start.create.startKey === undefined)
      return this.#taken(engine, start, request);
    const wait = request.wait ?? 0;
    const result = wait > 0 ? this.#resultOf(engine, start, wait, request.signal) : undefined;
    let status: Status = "Running";
    try {
      await new Promise<void>((resolve, reject) => {
        const accepted = () => {
          status = engine.table.get(run)?.state.status ?? status;
          resolve();
        };
        engine.startInstance(start, { accepted, refused: reject }, this.#eventMail(engine, request));
      });
    } catch (error) {
      result?.giveUp();
      if (error instanceof StartRefused) return this.#taken(engine, start, request);
      throw error;
    }
    const first = await result?.promise;
    const closed = first?.status === "ContinuedAsNew" ? await this.#closedIn(id, run, wait, request.signal) : first;
    return {
      id,
      runId: run,
      status: closed?.status ?? status,
      created: true,
      replayed: false,
      ...(closed !== undefined && { result: closed }),
    };
  }

  /** The event that goes with a start. */
  #eventMail(engine: Engine, { event }: StartRequest): Mail[] {
    if (event === undefined) return [];
    const message = event.idempotencyKey ?? `m-${engine.newRunId()}`;
    return [{ fact: this.#eventFact(engine, message, event.name, event.payload) }];
  }

  #eventFact(engine: Engine, message: string, name: string, payload: unknown): Incoming {
    checkName(name, "the name of an event");
    const { payload: limit } = engine.options.limits.execution;
    return { type: "EventReceived", message, name, payload: encodePayload(payload, { limit, what: `payload of event "${name}"` }) };
  }

  /** The result of a chain of runs, if it comes in time. */
  async #closedIn(id: string, runId: string, wait: number, signal: AbortSignal | undefined): Promise<ClosedResult | undefined> {
    const result = await this.result(id, { runId, wait, ...(signal !== undefined && { signal }) });
    return isClosedResult(result) ? result : undefined;
  }

  #startOf(engine: Engine, definition: WorkflowDefinition, request: StartRequest): Start {
    const { name: workflow, version } = definition;
    const run = engine.newRunId();
    const id = request.id === undefined ? run : checkName(request.id, "the id of an instance");
    if (request.correlationId !== undefined) checkName(request.correlationId, "correlationId");
    if (request.attributes !== undefined) checkAttributes(request.attributes);
    const limit = engine.options.limits.execution.payload;
    const what = `input of workflow "${workflow}"`;
    const input = encodePayload(parse(definition.input, request.input, what), {
      limit,
      what,
    });
    const correlationId = request.correlationId ?? id;
    const startAt = request.delay === undefined ? request.startAt : engine.options.clock.now() + request.delay;
    return {
      identity: {
        tenant: this.#tenant,
        run,
        id,
        shard: engine.shardOf(this.#tenant, id),
        workflow,
        version,
        correlationId,
      },
      create: {
        id,
        workflow,
        version,
        correlationId,
        ...(request.idempotencyKey !== undefined && {
          startKey: {
            key: request.idempotencyKey,
            digest: requestDigest(request),
          },
        }),
      },
      fact: {
        type: "InstanceStarted",
        id,
        workflow,
        version,
        input,
        seed: engine.newSeed(),
        correlationId,
        ...(startAt !== undefined && { startAt }),
        ...(request.memo !== undefined && {
          memo: encodePayload(request.memo, { limit, what: "memo" }),
        }),
        ...(request.attributes !== undefined && {
          attributes: encodePayload(request.attributes, {
            limit,
            what: "attributes",
          }),
        }),
      },
    };
  }

  /** Waits for a run from before it is created, so that its end cannot be missed. */
  #resultOf(
    engine: Engine,
    start: Start,
    wait: number,
    signal: AbortSignal | undefined,
  ): { promise: Promise<ClosedResult | undefined>; giveUp: () => void } {
    const { clock } = engine.options;
    const { id, run } = start.identity;
    let giveUp = () => {};
    const promise = new Promise<ClosedResult | undefined>((resolve) => {
      const end = (result: ClosedResult | undefined) => {
        forget();
        cancelTimer();
        signal?.removeEventListener("abort", giveUp);
        resolve(result);
      };
      const forget = engine.waiters.add(run, { tell: (closing) => end(closedResult(id, run, closing)), giveUp: () => end(undefined) });
      const cancelTimer = clock.wakeAt(clock.now() + wait, () => end(undefined));
      giveUp = () => end(undefined);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp);
    });
    return { promise, giveUp: () => giveUp() };
  }

  /** An identity of the start is in use: answer a repeated request again, return the instance that is there, or say which it is. */
  async #taken(engine: Engine, start: Start, request: StartRequest): Promise<StartResponse> {
    const { store } = engine.options;
    const { id, workflow } = start.identity;
    const { startKey } = start.create;
    if (startKey !== undefined) {
      const known = await store.findStartKey(this.#tenant, workflow, startKey.key);
      if (known !== undefined) return this.#again(engine, known, startKey, request);
    }
    const open = await store.findInstance(this.#tenant, id);
    if (open === undefined || open.closedAt !== undefined) {
      await engine.ownership.verify();
      const { unavailable } = engine;
      if (unavailable !== undefined) throw unavailable;
      // It closed meanwhile: the id is free.
      return this.#startOnce(request);
    }
    if (request.event !== undefined && open.workflow === workflow) {
      const { name, payload, idempotencyKey } = request.event;
      await this.sendEvent(id, name, payload, { runId: open.run, ...(idempotencyKey !== undefined && { idempotencyKey }) });
      return this.#existing(open, false, request);
    }
    if (request.onConflict === "return" && open.workflow === workflow) return this.#existing(open, false, request);
    throw new ApiError(
      `An open instance of workflow "${open.workflow}" has the id "${id}" (run ${open.run}). Use another id, wait until it ends, or pass onConflict: "return" to get it.`,
      { code: "INSTANCE_EXISTS" },
    );
  }

  async #again(
    engine: Engine,
    known: { run: string; digest: string },
    startKey: { key: string; digest: string },
    request: StartRequest,
  ): Promise<StartResponse> {
    if (known.digest !== startKey.digest)
      throw new ApiError(
        `The idempotency key "${startKey.key}" was used for another start of workflow "${request.workflow}". Use a new key for a new request.`,
        {
          code: "IDEMPOTENCY_CONFLICT",
        },
      );
    const row = await engine.options.store.getInstance({
      tenant: this.#tenant,
      run: known.run,
    });
    if (row === undefined)
      throw new ApiError(`The run ${known.run} that this idempotency key started is gone.`, { code: "INSTANCE_NOT_FOUND" });
    return this.#existing(row, true, request);
  }

  async #existing(row: InstanceRow, replayed: boolean, request: StartRequest): Promise<StartResponse> {
    const result = request.wait === undefined ? undefined : await this.result(row.id, { runId: row.run, wait: request.wait });
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

  // ── reading ────────────────────────────────────────────────────────────────────────────────────────────

  async list(request: ListRequest): Promise<Page<InstanceSummary>> {
    const { store } = this.#engine().options;
    const limit = bounded(request.limit ?? defaultPage, maxPage, "limit");
    const { statuses } = request;
    const filter: ListFilter = {
      ...(request.workflow !== undefined && { workflow: request.workflow }),
      ...(statuses !== undefined &&
        statuses.length > 0 && {
          statuses: [...new Set(statuses.map(storedStatus))],
        }),
      ...(request.attributes !== undefined && {
        attributes: request.attributes,
      }),
      ...(request.startedAfter !== undefined && {
        startedAfter: request.startedAfter.getTime(),
      }),
      ...(request.startedBefore !== undefined && {
        startedBefore: request.startedBefore.getTime(),
      }),
    };
    const items: InstanceSummary[] = [];
    let after = request.cursor === undefined ? undefined : runOfCursor(request.cursor);
    for (let pages = 1; ; pages += 1) {
      const rows = await store.listInstances(this.#tenant, filter, {
        ...(after !== undefined && { after }),
        limit,
      });
      for (const row of rows) {
        after = row.run;
        const summary = summaryOf(row);
        if (statuses === undefined || statuses.length === 0 || statuses.includes(summary.status)) items.push(summary);
        if (items.length === limit) return { items, nextCursor: cursorAfter(row.run) };
      }
      if (rows.length < limit) return { items };
      // Few rows have a state that only the row's history tells apart: the caller goes on from here.
      if (pages === maxPagesRead) return { items, nextCursor: cursorAfter(after as string) };
    }
  }

  async runs(id: string, request: { readonly cursor?: string; readonly limit?: number } = {}): Promise<Page<InstanceSummary>> {
    const engine = this.#engine();
    const limit = bounded(request.limit ?? defaultPage, maxPage, "limit");
    const after = request.cursor === undefined ? undefined : runOfCursor(request.cursor);
    await this.#row(engine, id, undefined);
    const rows = await engine.options.store.listInstances(this.#tenant, { id }, { ...(after !== undefined && { after }), limit });
    const last = rows[rows.length - 1];
    return { items: rows.map(summaryOf), ...(last !== undefined && rows.length === limit && { nextCursor: cursorAfter(last.run) }) };
  }

  async describe(id: string, options: { readonly runId?: string } = {}): Promise<InstanceDescription> {
    const engine = this.#engine();
    const row = await this.#row(engine, id, options.runId);
    const turns = await this.#turns(engine, row.run);
    return descriptionOf(row, turns, await engine.revival.waitingAt(row));
  }

  async graph(id: string, options: { readonly runId?: string } = {}): Promise<RunGraph> {
    const engine = this.#engine();
    const row = await this.#row(engine, id, options.runId);
    return runGraphOf(row, await this.#turns(engine, row.run));
  }

  async result(
    id: string,
    options: {
      readonly runId?: string;
      readonly wait?: number;
      readonly signal?: AbortSignal;
    } = {},
  ): Promise<ResultResponse> {
    const engine = this.#engine();
    const known = options.runId === undefined ? engine.table.open(this.#tenant, id) : engine.table.get(options.runId);
    const inMemory =
      known !== undefined && known.identity.tenant === this.#tenant && known.identity.id === id && known.create === undefined
        ? known
        : undefined;
    const run = inMemory?.identity.run ?? (await this.#row(engine, id, options.runId)).run;
    const { clock } = engine.options;
    const deadline = clock.now() + (options.wait ?? 0);
    let result = await this.#resultOfRun(engine, id, run, options.wait ?? 0, options.signal, inMemory !== undefined);
    // The chain of runs that went on as new ones has one result: the last one's.
    while (result.continuedTo !== undefined)
      result = await this.#resultOfRun(engine, id, result.continuedTo, Math.max(0, deadline - clock.now()), options.signal, false);
    return result;
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
    return new Promise((resolve, reject) => {
      const forget = engine.waiters.add(run, {
        tell: (closing) => end(() => resolve(closedResult(id, run, closing))),
        giveUp: (reason) => end(() => reject(reason)),
      });
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
            if (isClosedResult(now)) end(() => resolve(now));
          },
          (error) => end(() => reject(error)),
        );
    });
  }

  async #resultNow(engine: Engine, id: string, run: string): Promise<LinkedResult> {
    const row = await this.#row(engine, id, run);
    const status = statusOf(row);
    if (!isClosed(status)) return { id, runId: run, status };
    const last = await engine.options.store.readLastTurn({
      tenant: this.#tenant,
      run,
    });
    const turn = last === undefined ? undefined : await engine.rows.decode(last);
    const closing = turn?.events.findLast((fact): fact is Closing => closingTypes.has(fact.type));
    if (closing === undefined) throw new WovyrError(`run ${run} is closed, but its history does not say how`, { code: "INTERNAL" });
    return closedResult(id, run, closing);
  }

  async history(id: string, request: HistoryRequest = {}): Promise<HistoryPage> {
    const engine = this.#engine();
    const row = await this.#row(engine, id, request.runId);
    const limit = bounded(request.limit ?? defaultEvents, maxEvents, "limit");
    const fromSeq = bounded(request.fromSeq ?? 1, Number.MAX_SAFE_INTEGER, "fromSeq");
    const rows = await engine.options.store.readHistory({ tenant: this.#tenant, run: row.run }, fromSeq, limit);
    const items = (await engine.rows.decodeAll(rows)).flatMap((turn) => turnView(turn, fromSeq)).slice(0, limit);
    const last = items[items.length - 1];
    const more = last !== undefined && last.seq < row.tail;
    return { runId: row.run, items, ...(more && { nextSeq: last.seq + 1 }) };
  }

  async *stream(
    id: string,
    options: {
      readonly runId?: string;
      readonly after?: { readonly runId: string; readonly seq: number };
      readonly signal?: AbortSignal;
    } = {},
  ): AsyncGenerator<StreamItem> {
    const engine = this.#engine();
    const row = await this.#row(engine, id, options.runId);
    if (options.after !== undefined && (options.after.runId !== row.run || options.after.seq > row.tail))
      throw new ApiError(
        `Event ${options.after.runId}:${options.after.seq} is not of run ${row.run}. Leave Last-Event-ID out to begin at the start.`,
        {
          code: "INVALID_CURSOR",
        },
      );
    yield* followRun(engine, row, options.after?.seq ?? 0, options.signal);
  }

  // ── messages ───────────────────────────────────────────────────────────────────────────────────────────

  sendEvent(
    id: string,
    event: string,
    payload: unknown,
    options: { readonly runId?: string; readonly idempotencyKey?: string } = {},
  ): Promise<Delivered> {
    return this.#message(id, options, (message, engine) => this.#eventFact(engine, message, event, payload));
  }

  async query(id: string, query: string, input: unknown, options: { readonly runId?: string } = {}): Promise<unknown> {
    const engine = this.#acting();
    return engine.dialogue.query(await this.#row(engine, id, options.runId), query, input);
  }

  async update(
    id: string,
    update: string,
    input: unknown,
    options: { readonly runId?: string; readonly idempotencyKey?: string; readonly wait?: number; readonly signal?: AbortSignal } = {},
  ): Promise<UpdateResponse> {
    const engine = this.#acting();
    const { run } = await this.#row(engine, id, options.runId);
    const { idempotencyKey, wait = defaultUpdateWait, signal } = options;
    return engine.dialogue.update({ tenant: this.#tenant, run, id }, { name: update, input, idempotencyKey, wait, signal });
  }

  wake(id: string, options: { readonly runId?: string; readonly idempotencyKey?: string } = {}): Promise<Delivered> {
    return this.#message(id, options, (message) => ({ type: "WakeRequested", message }));
  }

  cancel(
    id: string,
    options: {
      readonly runId?: string;
      readonly mode?: CancelMode;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    } = {},
  ): Promise<Delivered> {
    const { mode = "graceful", reason } = options;
    return this.#message(id, options, (message) => ({
      type: "CancelRequested",
      message,
      mode,
      ...(reason !== undefined && { reason }),
    }));
  }

  terminate(
    id: string,
    options: {
      readonly runId?: string;
      readonly reason?: string;
      readonly idempotencyKey?: string;
    } = {},
  ): Promise<Delivered> {
    const { reason } = options;
    return this.#message(id, options, (message) => ({
      type: "TerminateRequested",
      message,
      ...(reason !== undefined && { reason }),
    }));
  }

  /** Resolves when the run's history holds the message. */
  async #message(
    id: string,
    options: { readonly runId?: string; readonly idempotencyKey?: string },
    make: (message: string, engine: Engine) => Incoming,
  ): Promise<Delivered> {
    const engine = this.#acting();
    const fact = make(options.idempotencyKey ?? `m-${engine.newRunId()}`, engine);
    const open = options.runId === undefined ? engine.table.open(this.#tenant, id) : undefined;
    // One that is not durable yet may be refused: then another run has the id.
    const run = (open?.create === undefined ? open?.identity.run : undefined) ?? (await this.#row(engine, id, options.runId)).run;
    return new Promise((resolve, reject) => {
      engine.deliver(
        { tenant: this.#tenant, run },
        {
          fact,
          receipt: {
            accepted: (replayed) => resolve({ replayed }),
            refused: reject,
          },
        },
      );
    });
  }

  async health(): Promise<{
    readonly ready: boolean;
    readonly reason?: string;
  }> {
    const { unavailable, ready } = this.#engine();
    if (unavailable !== undefined) return { ready: false, reason: unavailable.message };
    return ready
      ? { ready }
      : {
          ready,
          reason: "The orchestrator is recovering the runs of its shards.",
        };
  }

  // ── finding ────────────────────────────────────────────────────────────────────────────────────────────

  /** The engine, when it may change anything now. */
  #acting(): Engine {
    const engine = this.#engine();
    const { unavailable } = engine;
    if (unavailable !== undefined) throw unavailable;
    return engine;
  }

  async #row(engine: Engine, id: string, runId: string | undefined): Promise<InstanceRow> {
    const { store } = engine.options;
    checkName(id, "the id of an instance");
    if (runId !== undefined) checkName(runId, "runId");
    const row =
      runId === undefined ? await store.findInstance(this.#tenant, id) : await store.getInstance({ tenant: this.#tenant, run: runId });
    if (row === undefined || row.id !== id)
      throw new ApiError(runId === undefined ? `There is no instance "${id}".` : `Instance "${id}" has no run "${runId}".`, {
        code: "INSTANCE_NOT_FOUND",
      });
    return row;
  }

  async #turns(engine: Engine, run: string): Promise<Turn[]> {
    const turns: Turn[] = [];
    for (let from = 1; ; ) {
      const rows = await engine.options.store.readHistory({ tenant: this.#tenant, run }, from, turnsPerRead);
      turns.push(...(await engine.rows.decodeAll(rows)));
      const last = rows[rows.length - 1];
      if (last === undefined || rows.length < turnsPerRead) return turns;
      from = last.seq + last.count;
    }
  }
}

const closingTypes: ReadonlySet<string> = new Set([
  "InstanceCompleted",
  "InstanceFailed",
  "InstanceCancelled",
  "InstanceTerminated",
  "InstanceContinuedAsNew",
] satisfies Closing["type"][]);

/** The result of one run, with the run that goes on from it. */
type LinkedResult = ResultResponse & { readonly continuedTo?: string };

function closedResult(id: string, run: string, closing: Closing): ClosedResult & LinkedResult {
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
    case "InstanceFailed":
      return {
        id,
        runId: run,
        status: "Failed",
        failure: viewOfFailure(closing.failure),
      };
    case "InstanceCancelled":
      return {
        id,
        runId: run,
        status: "Cancelled",
        failure: viewOfFailure(closing.failure),
      };
    case "InstanceTerminated":
      return {
        id,
        runId: run,
        status: "Terminated",
        failure: viewOfFailure(closing.failure),
      };
  }
}

const isClosedResult = (result: ResultResponse): result is ClosedResult => isClosed(result.status);

function storedStatus(status: Status): StoredStatus {
  if (isClosed(status)) return status;
  return status === "Parked" ? "parked" : "open";
}

function infoOf(versions: readonly WorkflowDefinition[]): WorkflowInfo {
  const latest = versions[versions.length - 1] as WorkflowDefinition;
  return {
    name: latest.name,
    versions: versions.map((definition) => definition.version),
    input: latest.input === undefined ? null : jsonSchemaOf(latest.input),
    output: latest.output === undefined ? null : jsonSchemaOf(latest.output),
  };
}

/** What makes two starts the same request. */
function requestDigest({
  workflow,
  id,
  version,
  input,
  startAt,
  delay,
  attributes,
  memo,
  correlationId,
  onConflict,
  event,
}: StartRequest): string {
  const said = [workflow, id, version, input, startAt, delay, attributes, memo, correlationId, onConflict];
  return digest(event === undefined ? said : [...said, event]);
}

function bounded(value: number, max: number, what: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new ApiError(`${what} must be a whole number from 1 to ${max}, not ${value}`, { code: "MALFORMED_REQUEST" });
}
