/**
 * What a start is, whichever door it comes through: over HTTP, in process, or in a transaction of the application's own.
 *
 * 1. Everything that is wrong with it is found here, before anything of it is written.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  checkAttributes,
  checkName,
  checkWorks,
  decodePayload,
  digest,
  encodePayload,
  type Incoming,
  keyOf,
  type Payload,
  parse,
  recordedPriority,
  type StartDetails,
  type StartRequest,
  singletonId,
  singletonPrefix,
  type WorkflowDefinition,
} from "@wovyr/sdk/internal";
import { type DebouncedStart, debouncedStart } from "./debouncing.ts";
import type { InstanceIdentity } from "./instance.ts";
import { eventFact } from "./messages.ts";
import type { NewInstance } from "./ports/store.ts";

/** How long a start's key is known, in milliseconds. */
export const startKeyLife = 24 * 3_600_000;

/** Why a new instance was not created; the caller finds out which identity was taken. */
export class StartRefused extends WovyrError {}

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

export type Start = {
  readonly identity: InstanceIdentity;
  readonly create: NewInstance;
  readonly fact: StartFact;
};

/** What a request does not say. */
export type StartMaking = {
  readonly run: string;
  readonly seed: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Bytes of one value. */
  readonly limit: number;
};

/** The new instance that a request asks for. Throws for whatever is wrong with the request. */
export function newStart(
  definition: WorkflowDefinition,
  request: StartRequest,
  { run, seed, now, limit }: StartMaking,
): Omit<Start, "identity"> {
  const { name: workflow, version } = definition;
  if (request.startAt !== undefined && request.delay !== undefined)
    throw new ApiError("startAt and delay both say when to start: give one of them", { code: "INVALID_OPTION" });
  if (request.correlationId !== undefined) checkName(request.correlationId, "correlationId");
  if (request.attributes !== undefined) checkAttributes(request.attributes);
  const what = `input of workflow "${workflow}"`;
  const input = encodePayload(parse(definition.input, request.input, what), { limit, what });
  checkWorks(definition.output, `output of workflow "${workflow}"`);
  const id = instanceId(definition, request, input) ?? run;
  const correlationId = request.correlationId ?? id;
  const said: StartDetails = {
    input,
    ...(request.memo !== undefined && { memo: encodePayload(request.memo, { limit, what: "memo" }) }),
    ...(request.attributes !== undefined && { attributes: encodePayload(request.attributes, { limit, what: "attributes" }) }),
    ...recordedPriority(request.priority, definition.priority),
    ...(request.timeout !== undefined && { timeout: request.timeout }),
  };
  const debounced = debouncedStart(definition, request, said, now);
  const startAt = debounced?.startAt ?? (request.delay === undefined ? request.startAt : now + request.delay);
  return {
    create: {
      id,
      workflow,
      version,
      correlationId,
      ...startKeyOf(request, debounced),
    },
    fact: {
      type: "InstanceStarted",
      id,
      workflow,
      version,
      seed,
      correlationId,
      ...said,
      ...(startAt !== undefined && { startAt }),
      ...(debounced !== undefined && { debounceUntil: debounced.until, ...(debounced.known !== undefined && { known: debounced.known }) }),
    },
  };
}

/** The id that a start asks for, or that follows from its workflow; undefined when any will do. */
function instanceId({ name, singleton }: WorkflowDefinition, { id }: StartRequest, input: Payload): string | undefined {
  if (singleton === undefined) {
    if (id?.startsWith(singletonPrefix) === true)
      throw new ApiError(
        `"${singletonPrefix}…" are the ids of singletons, and workflow "${name}" is none: choose another id than "${id}".`,
        {
          code: "INVALID_OPTION",
        },
      );
    return id === undefined ? undefined : checkName(id, "the id of an instance");
  }
  const key = singleton.key && keyOf(singleton.key, decodePayload(input), `singleton.key of workflow "${name}"`);
  const only = singletonId(name, key);
  if (id === undefined || id === only) return only;
  throw new ApiError(`Workflow "${name}" is a singleton: the id of its instance follows from that, and is "${only}". Leave \`id\` out.`, {
    code: "INVALID_OPTION",
  });
}

/** In its shard's database are the starts of an idempotency key that have no id of their own. */
export const keyPlace = (idempotencyKey: string): string => `key ${idempotencyKey}`;

/**
 * The id whose shard a start belongs to: that of the instance, or one that all starts of a key have in common, of debounced ones, and (`keyed`) of all where
 * keys have databases. Undefined when any will do, and when the request is refused by whoever gets it.
 */
export function placeIdOf(
  definition: WorkflowDefinition | undefined,
  request: StartRequest,
  { limit, keyed }: { readonly limit: number; readonly keyed: boolean },
): string | undefined {
  if (definition?.singleton === undefined && definition?.debounce === undefined)
    return request.id ?? (keyed && request.idempotencyKey !== undefined ? keyPlace(request.idempotencyKey) : undefined);
  const what = `input of workflow "${definition.name}"`;
  try {
    const input = encodePayload(parse(definition.input, request.input, what), { limit, what });
    const debounced = debouncedStart(definition, request, { input }, 0);
    return debounced === undefined ? instanceId(definition, request, input) : `${definition.name} ${debounced.startKey.key}`;
  } catch {
    return request.id;
  }
}

function startKeyOf(request: StartRequest, debounced: DebouncedStart | undefined): Pick<NewInstance, "startKey"> {
  if (debounced !== undefined) return { startKey: debounced.startKey };
  const { idempotencyKey } = request;
  return idempotencyKey === undefined ? {} : { startKey: { key: idempotencyKey, digest: requestDigest(request) } };
}

/** What makes two starts the same request. The version does not count: a client that was upgraded between two tries asks for the same start. */
function requestDigest({
  workflow,
  id,
  input,
  startAt,
  delay,
  attributes,
  memo,
  correlationId,
  onConflict,
  event,
  timeout,
  priority,
}: StartRequest): string {
  const said = [workflow, id, undefined, input, startAt, delay, attributes, memo, correlationId, onConflict];
  if (priority !== undefined) return digest([...said, event, timeout, priority]);
  return digest(event === undefined && timeout === undefined ? said : [...said, event, timeout]);
}

/** The event that goes with a start, as its run gets it. Throws for whatever is wrong with it. */
export function startEvent(
  { events }: WorkflowDefinition,
  request: StartRequest,
  { newId, limit }: { readonly newId: () => string; readonly limit: number },
): Extract<Incoming, { type: "EventReceived" }> | undefined {
  const { event } = request;
  if (event === undefined) return undefined;
  const { name, payload } = event;
  parse(events?.find((declared) => declared.name === name)?.schema, payload, `payload of event "${name}"`);
  return eventFact(eventKey(request) ?? `m-${newId()}`, name, payload, limit);
}

/** What makes the event of a start one that is delivered once: its own key, else that of the start. */
export function eventKey({ event, idempotencyKey }: StartRequest): string | undefined {
  return event?.idempotencyKey ?? (idempotencyKey === undefined ? undefined : `start:${idempotencyKey}`);
}

/** An open instance has the id of a start. */
export function instanceExists(id: string, { workflow, run }: { readonly workflow: string; readonly run: string }): ApiError {
  return new ApiError(
    `An open instance of workflow "${workflow}" has the id "${id}" (run ${run}). Use another id, wait until it ends, or pass onConflict: "return" to get it.`,
    { code: "INSTANCE_EXISTS" },
  );
}

/** Another start has the idempotency key. */
export function startKeyConflict(workflow: string, key: string): ApiError {
  return new ApiError(
    `The idempotency key "${key}" was used for another start of workflow "${workflow}". Use a new key for a new request.`,
    {
      code: "IDEMPOTENCY_CONFLICT",
    },
  );
}

/** The run that a key started was removed. */
export function startedRunGone(run: string): ApiError {
  return new ApiError(`The run ${run} that this idempotency key started is gone.`, { code: "INSTANCE_NOT_FOUND" });
}
