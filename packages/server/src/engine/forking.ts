/**
 * New runs from old histories: forks, and resets.
 *
 * 1. A fork leaves its origin as it is, whatever state that is in.
 * 2. A reset of an open run is one commit: the run ends, and the one that goes on is there. An id that another open run has is refused.
 * 3. The same key with the same request is one new run.
 */
import { ApiError } from "@wovyr/sdk";
import {
  checkName,
  digest,
  encodePayload,
  type ForkRequest,
  foldHistory,
  type HistoryFact,
  type Incoming,
  messageDigest,
  type NewRun,
  parse,
  type ResetRequest,
  type StartFact,
  type WorkflowDefinition,
} from "@wovyr/sdk/internal";
import { begin } from "./begin.ts";
import { borderAt } from "./border.ts";
import type { Engine } from "./engine.ts";
import { type ForkPlan, forkWrite } from "./fork-write.ts";
import { notOwner, ofOtherGroup } from "./ownership-errors.ts";
import type { InstanceRow, NewInstance } from "./ports/store.ts";
import type { Start } from "./start.ts";
import type { Tenancy } from "./tenancy.ts";
import { statusOf } from "./views.ts";

type ResetFact = Extract<Incoming, { type: "ResetRequested" }>;
type StartKey = NonNullable<NewInstance["startKey"]>;

export class Forking {
  readonly #tenancy: Tenancy;

  constructor(tenancy: Tenancy) {
    this.#tenancy = tenancy;
  }

  async fork(id: string, request: ForkRequest = {}): Promise<NewRun> {
    const engine = this.#acting();
    if (request.id !== undefined) checkName(request.id, "the id of a fork");
    if (request.at !== undefined && request.input !== undefined)
      throw new ApiError("A fork from a place in a history has the input that its code has used already: give `at` or `input`, not both.", {
        code: "INVALID_OPTION",
      });
    const row = await this.#tenancy.row(engine, id, request.runId);
    const definition = engine.options.registry.forStart(row.workflow, request.version ?? row.version);
    const startKey = forkKey(row, request);
    const known = await this.#known(engine, row, startKey);
    if (known !== undefined) return known;
    if (definition.singleton !== undefined) await this.#checkSingleton(engine, row);
    return this.#fork(engine, row, definition, request, startKey);
  }

  /** A fork has an id of its own, which nothing would keep from being the second that is open. */
  async #checkSingleton(engine: Engine, row: InstanceRow): Promise<void> {
    const open = await engine.options.store.findInstance(row.tenant, row.id, row.shard);
    if (open === undefined || open.closedAt !== undefined) return;
    throw new ApiError(
      `Workflow "${row.workflow}" is a singleton, and run ${open.run} of "${row.id}" is open: reset it, or fork it when it has ended.`,
      { code: "INSTANCE_EXISTS" },
    );
  }

  #fork(engine: Engine, row: InstanceRow, definition: WorkflowDefinition, request: ForkRequest, startKey: StartKey | undefined) {
    if (request.at === undefined) return this.#startAgain(engine, row, definition, request, startKey);
    const { at } = request;
    return this.#copy(engine, row, startKey, (turns) => {
      const run = request.id === undefined ? engine.ids.ownRun(row.tenant, request.idempotencyKey) : engine.ids.run();
      return { at: borderAt(turns, at), id: request.id ?? run, run, version: definition.version };
    });
  }

  async reset(id: string, request: ResetRequest): Promise<NewRun> {
    const engine = this.#acting();
    const row = await this.#tenancy.row(engine, id, request.runId);
    const { to, reason, idempotencyKey } = request;
    if (engine.ownership.epochOf(row.shard) === undefined)
      throw engine.ownership.members.has(row.shard) ? notOwner() : ofOtherGroup(`Run "${row.run}"`, engine.options.group);
    const message = idempotencyKey ?? `m-${engine.ids.run()}`;
    const fact = (at: number): ResetFact => ({
      type: "ResetRequested",
      message,
      to: at,
      ...(typeof to !== "number" && { asked: to }),
      run: engine.ids.run(row.run),
      ...(reason !== undefined && { reason }),
    });
    const startKey = resetKey(row.id, fact(typeof to === "number" ? to : 0));
    const known = await this.#known(engine, row, startKey);
    if (known !== undefined) return known;
    if (row.closedAt === undefined) {
      const asked = fact(borderAt(await this.#tenancy.turns(engine, row), to));
      const outcome = await this.#resetOpen(engine, row, asked);
      if (outcome !== undefined) return outcome;
    }
    const open = await engine.options.store.findInstance(row.tenant, row.id, row.shard);
    if (open !== undefined && open.closedAt === undefined) throw taken(open);
    return this.#copy(engine, row, startKey, (turns) => {
      const asked = fact(borderAt(turns, to));
      return { at: asked.to, id: row.id, run: asked.run, version: row.version, reset: { reason, since: [] } };
    });
  }

  /** Undefined when the run has closed by itself meanwhile. */
  async #resetOpen(engine: Engine, { tenant, run, id, shard, workflow }: InstanceRow, fact: ResetFact): Promise<NewRun | undefined> {
    try {
      const replayed = await new Promise<boolean>((accepted, refused) =>
        engine.deliver({ tenant, run, shard }, { fact, receipt: { accepted, refused } }),
      );
      const { store } = engine.options;
      const next = replayed ? (await store.findStartKey(tenant, workflow, resetKey(id, fact).key, shard))?.run : fact.run;
      const row = next === undefined ? undefined : await store.getInstance({ tenant, run: next, shard });
      return row && { ...newRun(row), replayed };
    } catch (error) {
      if (error instanceof ApiError && error.code === "INSTANCE_CLOSED") return undefined;
      throw error;
    }
  }

  /** Writes a run that goes on from a history, and wakes it. */
  async #copy(
    engine: Engine,
    row: InstanceRow,
    startKey: StartKey | undefined,
    plan: (turns: ForkPlan["source"]["turns"]) => Omit<ForkPlan, "source" | "startKey">,
  ): Promise<NewRun> {
    const source = await engine.revival.read(row);
    if (source === undefined) throw new ApiError(`Instance "${row.id}" has no run "${row.run}".`, { code: "INSTANCE_NOT_FOUND" });
    const write = await forkWrite({ source, startKey, ...plan(source.turns) }, engine);
    const outcome = await engine.options.store.importRun(write);
    if (outcome === "id-taken") throw taken(await engine.options.store.findInstance(row.tenant, write.row.id, write.row.shard));
    if (outcome !== "done") {
      const known = await this.#known(engine, row, startKey);
      if (known !== undefined) return known;
      throw new ApiError("Another run was given the same name at the same moment; try again.", { code: "OVERLOADED", retryAfter: 1_000 });
    }
    void engine.revival.load(write.row);
    return newRun({ ...write.row, nonce: "", attributes: {} });
  }

  // ── a new start ────────────────────────────────────────────────────────────────────────────────────────

  /** A new instance with the input and the options of another. */
  async #startAgain(
    engine: Engine,
    row: InstanceRow,
    definition: WorkflowDefinition,
    request: ForkRequest,
    startKey: StartKey | undefined,
  ): Promise<NewRun> {
    const origin = foldHistory(await this.#tenancy.turns(engine, row)).start;
    if (origin === undefined) throw new ApiError(`Run "${row.run}" has not begun; there is nothing to fork yet.`, { code: "NOT_A_BORDER" });
    const start = this.#startOf(engine, definition, row, origin, request, startKey);
    const { id, run } = start.identity;
    const status = await begin(engine, start);
    if (status !== undefined) return { id, runId: run, status, replayed: false };
    const known = await this.#known(engine, row, startKey);
    if (known !== undefined) return known;
    throw taken(await engine.options.store.findInstance(row.tenant, id, engine.shardOf(row.tenant, id)));
  }

  #startOf(
    engine: Engine,
    definition: WorkflowDefinition,
    row: InstanceRow,
    origin: StartFact,
    request: ForkRequest,
    startKey: StartKey | undefined,
  ): Start {
    const { tenant } = row;
    const { name: workflow, version } = definition;
    const run = request.id === undefined ? engine.ids.ownRun(tenant, request.idempotencyKey) : engine.ids.run();
    const id = request.id ?? run;
    const correlationId = row.correlationId ?? row.id;
    return {
      identity: { tenant, run, id, shard: engine.shardOf(tenant, id), workflow, version, correlationId },
      create: { id, workflow, version, correlationId, ...(startKey !== undefined && { startKey }) },
      fact: {
        type: "InstanceStarted",
        id,
        workflow,
        version,
        input: request.input === undefined ? origin.input : inputOf(engine, definition, request.input),
        seed: engine.ids.seed(),
        correlationId,
        ...(origin.memo !== undefined && { memo: origin.memo }),
        ...(origin.attributes !== undefined && { attributes: origin.attributes }),
        forkedFrom: { id: row.id, run: row.run },
      },
    };
  }

  // ── requests that were made before ─────────────────────────────────────────────────────────────────────

  /** The run that the same request has made. Throws IDEMPOTENCY_CONFLICT when the key was used for another one. */
  async #known(engine: Engine, { tenant, workflow }: InstanceRow, startKey: StartKey | undefined): Promise<NewRun | undefined> {
    const { store } = engine.options;
    const known = startKey && (await store.findStartKey(tenant, workflow, startKey.key));
    if (known === undefined) return undefined;
    if (known.digest !== startKey?.digest)
      throw new ApiError("This idempotency key was used for another request of the same kind. Use a new key for a new request.", {
        code: "IDEMPOTENCY_CONFLICT",
      });
    const row = await store.getInstance({ tenant, run: known.run, shard: undefined });
    if (row === undefined)
      throw new ApiError(`The run ${known.run} that this idempotency key began is gone.`, { code: "INSTANCE_NOT_FOUND" });
    return { ...newRun(row), replayed: true };
  }

  #acting(): Engine {
    const engine = this.#tenancy.acting();
    const refusal = engine.admission.refusal;
    if (refusal !== undefined) throw refusal;
    return engine;
  }
}

// Keys of users hold no blank: these cannot be theirs.
function forkKey({ id }: InstanceRow, { idempotencyKey, ...request }: ForkRequest): StartKey | undefined {
  if (idempotencyKey === undefined) return undefined;
  return {
    key: `fork ${id} ${idempotencyKey}`,
    digest: digest(["fork", request.runId, request.at, request.id, request.input, request.version]),
  };
}

/** Under which the run is known that a reset began. */
export const resetKey = (id: string, fact: ResetFact): StartKey => ({ key: `reset ${id} ${fact.message}`, digest: messageDigest(fact) });

/** The facts of a turn before the request to reset: the run has recorded them, and they are not stored yet. */
export const recordedBefore = (facts: readonly HistoryFact[], reset: ResetFact): readonly HistoryFact[] =>
  facts.slice(0, facts.indexOf(reset));

const newRun = (row: InstanceRow): NewRun => ({ id: row.id, runId: row.run, status: statusOf(row), replayed: false });

function inputOf(engine: Engine, definition: WorkflowDefinition, input: unknown): string {
  const what = `input of workflow "${definition.name}"`;
  return encodePayload(parse(definition.input, input, what), { limit: engine.options.limits.execution.payload, what });
}

function taken(open: InstanceRow | undefined): ApiError {
  return new ApiError(
    open === undefined
      ? "An open instance has this id."
      : `An open instance of workflow "${open.workflow}" has the id "${open.id}" (run ${open.run}). Use another id, or wait until it ends.`,
    { code: "INSTANCE_EXISTS" },
  );
}
