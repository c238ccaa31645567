/**
 * Starts, events and publications in a transaction of the application's own: they happen exactly if it commits.
 *
 * 1. It needs the database and the definitions, and no orchestrator in this process; one that owns the shards does what was asked for when it finds it
 *    (engine/requests.ts).
 * 2. Whatever is wrong is found before the database is asked, or answered by it without spoiling the transaction: it may go on after the error.
 * 3. Each call is one statement; a start that meets an open instance and brings an event is two.
 */
import { ApiError, type Workflow, WovyrError } from "@wovyr/sdk";
import type { SendOptions, StartOptions } from "@wovyr/sdk/client";
import {
  type Args,
  checkCodec,
  checkedKey,
  checkName,
  checkOptions,
  defaultLimits,
  digest,
  type EventDef,
  type Incoming,
  type PayloadCodec,
  type PublishOptions,
  parse,
  type StartEvent,
  type StartRequest,
  startRequest,
  type WorkflowDefinition,
  wholeNumber,
} from "@wovyr/sdk/internal";
import { HistoryRows } from "../engine/history-row.ts";
import { mailIdentity } from "../engine/mail.ts";
import { eventFact } from "../engine/messages.ts";
import { publicationMessage } from "../engine/ports/store.ts";
import { newPublication, publicationConflict, publicationDigest, publicationFact } from "../engine/publishing.ts";
import { newRunId, newSeed } from "../engine/run-id.ts";
import { shardHash } from "../engine/shard-of.ts";
import { eventKey, instanceExists, newStart, startEvent, startedRunGone, startKeyConflict } from "../engine/start.ts";
import { systemClock, systemRandom } from "../platform/system.ts";
import { startSlot } from "../store/sql/flush-parameters.ts";
import { checkStorable } from "../store/storable.ts";
import { call, type Transaction } from "./statement.ts";

/** What the orchestrators of the database were given as well. */
export type TransactionClientOptions = {
  /** Default `"default"`. */
  readonly group?: string | undefined;
  readonly codec?: PayloadCodec | undefined;
  readonly limits?:
    | {
        /** Bytes of one value; default 2 MiB. */
        readonly payload?: number | undefined;
      }
    | undefined;
};

export type StartedIn = {
  readonly id: string;
  readonly runId: string;
  /** False when an instance that was there already is returned. */
  readonly created: boolean;
  /** True when this start, or its event, was asked for before under the same idempotency key. */
  readonly replayed: boolean;
};

export type AskedIn = {
  /** True when it was asked for before under the same idempotency key, and may be under way. */
  readonly replayed: boolean;
};

export interface TransactionClient {
  /** Starts an instance of the version that the definition is of. */
  startIn<I, O>(tx: Transaction, workflow: Workflow<I, O>, ...args: Args<I, StartOptions>): Promise<StartedIn>;
  /** Sends an event to the instance that has this id and is open, as the transaction sees it: one that it has started itself as well. */
  sendIn<P>(tx: Transaction, id: string, event: EventDef<unknown, P>, ...args: Args<P, SendOptions>): Promise<AskedIn>;
  /** Tells an event to every run that waits for it, and starts the workflows that it triggers, once the transaction has committed. */
  publishIn<P>(tx: Transaction, event: EventDef<unknown, P>, ...args: Args<P, PublishOptions>): Promise<AskedIn & { readonly id: string }>;
}

type StartAnswer =
  | { readonly outcome: "started" | "no-group" }
  | ({ readonly outcome: "elsewhere" } & OwnIds)
  | { readonly outcome: "key-taken"; readonly run: string; readonly digest: string; readonly id: string | null }
  | { readonly outcome: "id-taken"; readonly run: string; readonly workflow: string };
/** Ids whose shard, of a group, is in one of several databases. */
type OwnIds = { readonly first: number; readonly shards: number; readonly place: number; readonly size: number };
type Answer = { readonly outcome: "asked" | "known" | "conflict" | "closed" | "unknown" | "no-group" };

const tenant = "default";

export function transactionClient(options: TransactionClientOptions = {}): TransactionClient {
  checkOptions(options, ["group", "codec", "limits"], "transactionClient");
  checkOptions(options.limits, ["payload"], "transactionClient's limits");
  const { codec, limits } = options;
  const group = checkName(options.group ?? "default", "the name of the group");
  checkCodec(codec, "transactionClient");
  const limit = limits?.payload === undefined ? defaultLimits.payload : wholeNumber(limits.payload, 1, "limits.payload");
  const rows = new HistoryRows(codec);
  const newId = () => newRunId(systemClock.now(), systemRandom);
  const sealed = (fact: Incoming) => rows.encodeFact(fact);

  async function send(tx: Transaction, id: string, { name, payload, idempotencyKey }: StartEvent): Promise<AskedIn> {
    const fact = eventFact(idempotencyKey ?? `m-${newId()}`, name, payload, limit);
    checkStorable({ id });
    const said = digest([name, fact.payload]);
    const { outcome } = await call<Answer>(tx, "send_in_1", [
      group,
      String(shardHash(tenant, id)),
      tenant,
      id,
      mailIdentity(fact),
      said,
      await sealed(fact),
    ]);
    if (outcome === "conflict") throw messageConflict(fact.message);
    if (outcome === "unknown") throw new ApiError(`There is no instance "${id}".`, { code: "INSTANCE_NOT_FOUND" });
    if (outcome === "closed")
      throw new ApiError(`The newest run of instance "${id}" has ended; it takes no more messages.`, { code: "INSTANCE_CLOSED" });
    return { replayed: outcome === "known" };
  }

  async function start(tx: Transaction, definition: WorkflowDefinition, request: StartRequest, run = newId()): Promise<StartedIn> {
    checkStartIn(definition);
    const now = systemClock.now();
    const { create, fact } = newStart(definition, request, { run, seed: newSeed(systemRandom), now, limit });
    const { id, workflow, version, correlationId = null, startKey } = create;
    const event = startEvent(definition, request, { newId, limit });
    checkStorable({ id, correlationId: create.correlationId });
    const answer = await call<StartAnswer>(tx, "start_in_1", [
      group,
      String(shardHash(tenant, id)),
      tenant,
      run,
      id,
      workflow,
      version,
      correlationId,
      startKey === undefined ? null : startSlot(workflow, startKey.key),
      startKey?.digest ?? null,
      String(now),
      mailIdentity(fact),
      await sealed(fact),
      event === undefined ? null : mailIdentity(event),
      event === undefined ? null : await sealed(event),
    ]);
    switch (answer.outcome) {
      case "started":
        return { id, runId: run, created: true, replayed: false };
      case "no-group":
        throw noGroup(group);
      case "elsewhere":
        if (id !== run) throw ofAnotherDatabase(id);
        return start(tx, definition, request, idIn(answer));
      case "key-taken":
        if (answer.digest !== startKey?.digest) throw startKeyConflict(workflow, startKey?.key ?? "");
        if (answer.id === null) throw startedRunGone(answer.run);
        return { id: answer.id, runId: answer.run, created: true, replayed: true };
      case "id-taken":
        return taken(tx, id, answer, request, definition.singleton && "return");
    }
  }

  /** A new id that belongs to the database of the transaction. */
  function idIn({ first, shards, place, size }: OwnIds): string {
    for (;;) {
      const id = newId();
      if ((first + (shardHash(tenant, id) % shards)) % size === place) return id;
    }
  }

  /** An open instance has the id: it gets the event of the start, or is returned, or is in the way. */
  async function taken(
    tx: Transaction,
    id: string,
    open: { readonly run: string; readonly workflow: string },
    request: StartRequest,
    skips: "return" | undefined,
  ): Promise<StartedIn> {
    if (open.workflow === request.workflow && request.event !== undefined) {
      const key = eventKey(request);
      const { replayed } = await send(tx, id, { ...request.event, ...(key !== undefined && { idempotencyKey: key }) });
      return { id, runId: open.run, created: false, replayed };
    }
    if (open.workflow === request.workflow && (request.onConflict ?? skips) === "return") {
      return { id, runId: open.run, created: false, replayed: false };
    }
    throw instanceExists(id, open);
  }

  return Object.freeze<TransactionClient>({
    async startIn<I, O>(tx: Transaction, workflow: Workflow<I, O>, input?: unknown, given?: StartOptions) {
      const request = startRequest(workflow, input, given);
      const { definition } = workflow;
      if (request.version !== undefined && request.version !== definition.version)
        throw new WovyrError(
          `startIn was given version "${definition.version}" of workflow "${definition.name}", and not "${request.version}": pass the definition of that one`,
          { code: "INVALID_OPTION" },
        );
      return start(tx, definition, request);
    },

    async sendIn(tx, id, event, ...[payload, given]) {
      checkEvent(event, "sendIn");
      const what = `sendIn(${event.name})`;
      checkOptions(given, ["idempotencyKey"], what);
      checkName(id, "the id of an instance");
      parse(event.schema, payload, `payload of event "${event.name}"`);
      const { idempotencyKey } = given ?? {};
      return send(tx, id, {
        name: event.name,
        payload,
        ...(idempotencyKey !== undefined && { idempotencyKey: checkedKey(idempotencyKey) }),
      });
    },

    async publishIn(tx, event, ...[payload, given]) {
      checkEvent(event, "publishIn");
      checkOptions(given, ["key", "idempotencyKey"], `publishIn(${event.name})`);
      const { key, idempotencyKey } = given ?? {};
      const id = idempotencyKey === undefined ? `p-${newId()}` : checkedKey(idempotencyKey);
      parse(event.schema, payload, `payload of event "${event.name}"`);
      const publication = newPublication({ id, event: event.name, key }, payload, limit);
      const { outcome } = await call<Answer>(tx, "publish_in_1", [
        group,
        String(shardHash(tenant, id)),
        tenant,
        id,
        publicationMessage(id),
        publicationDigest(publication),
        await sealed(publicationFact(publication)),
      ]);
      if (outcome === "no-group") throw noGroup(group);
      if (outcome === "conflict") throw publicationConflict(id);
      return { id, replayed: outcome === "known" };
    },
  });
}

function checkEvent(event: { readonly name: string }, what: string): void {
  if (typeof event === "object" && event !== null && typeof event.name === "string") return;
  throw new WovyrError(`${what} takes what \`event(…)\` returned, and not ${typeof event === "string" ? "a name" : typeof event}`, {
    code: "INVALID_DEFINITION",
  });
}

/** What cannot be told in one statement of somebody else's transaction. */
function checkStartIn({ name, singleton, debounce }: WorkflowDefinition): void {
  const what =
    debounce !== undefined ? "is debounced" : singleton?.onConflict === "cancel" ? 'is a singleton with onConflict "cancel"' : undefined;
  if (what === undefined) return;
  throw new ApiError(`Workflow "${name}" ${what}: it cannot be started in a transaction. Publish an event there that triggers it.`, {
    code: "INVALID_OPTION",
  });
}

function ofAnotherDatabase(id: string): ApiError {
  return new ApiError(
    `The instance "${id}" belongs to another of the databases that the store is spread over, and a transaction writes into its own: leave the id out, or publish an event here that triggers the workflow.`,
    { code: "INVALID_OPTION" },
  );
}

function messageConflict(key: string): ApiError {
  return new ApiError(`The idempotency key "${key}" was used for another request to this run. Use a new key for a new request.`, {
    code: "IDEMPOTENCY_CONFLICT",
  });
}

function noGroup(group: string): WovyrError {
  return new WovyrError(
    `no orchestrator of group "${group}" has ever used this database, so that nobody would do what is asked for: start one, or pass the group that it has`,
    { code: "STORE_INCOMPATIBLE" },
  );
}
