/**
 * Publishing: an event for every run that waits for it, and for the workflows that it triggers.
 *
 * 1. Whatever is wrong with it is found before anything of it is written.
 * 2. It is durable, together with a message for each run that waits, before anybody is told. What it triggers is started then, under a key that is made of
 *    the publication: at most once.
 * 3. Said again, it is the same one: what it had not delivered or started is delivered and started, and nothing twice.
 */
import { ApiError } from "@wovyr/sdk";
import {
  checkEventKey,
  checkName,
  digest,
  encodePayload,
  type Incoming,
  type Operations,
  type Published,
  parse,
} from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { type PublishOutcome, publicationMessage } from "./ports/store.ts";
import { startKeyLife } from "./start.ts";
import type { Tenancy } from "./tenancy.ts";

type Started = Published["started"][number];
type Trigger = { readonly workflow: string; readonly input: unknown };
export type NewPublication = { readonly id: string; readonly event: string; readonly key: string | undefined; readonly payload: string };

/** Milliseconds. */
export const defaultPublicationRetention = 7 * 24 * 3_600_000;
/** Runs that are told between two turns of the event loop. */
const toldAtOnce = 500;
/** For more runs than these the whole inbox is read, and not that of each. */
const readOneByOne = 50;
/** A start key is removed when it is a day old; what is repeated shortly before that is as good as too late. */
const triggersAgain = startKeyLife - 3_600_000;

export class Publishing {
  readonly #tenancy: Tenancy;
  readonly #anywhere: () => Pick<Operations, "start">;

  /** `anywhere` starts what is triggered. */
  constructor(tenancy: Tenancy, anywhere: () => Pick<Operations, "start">) {
    this.#tenancy = tenancy;
    this.#anywhere = anywhere;
  }

  async publish(
    event: string,
    payload: unknown,
    { key, idempotencyKey }: { readonly key?: string; readonly idempotencyKey?: string } = {},
  ): Promise<Published> {
    const engine = this.#tenancy.acting();
    const refusal = engine.admission.refusal;
    if (refusal !== undefined) throw refusal;
    checkPublication(event, key);
    const what = `payload of event "${event}"`;
    const { registry, limits } = engine.options;
    for (const { schema } of registry.declared(event)) parse(schema, payload, what);
    const triggers = triggersOf(engine, event, payload, what);
    const id = idempotencyKey ?? `p-${engine.ids.run()}`;
    const publication = newPublication({ id, event, key }, payload, limits.execution.payload);
    const stored = await this.#store(engine, publication);
    await this.#tell(engine, publication, stored);
    const late = engine.options.clock.now() - stored.at > triggersAgain;
    const started = late ? [] : await this.#start(publication, triggers);
    return { id: publication.id, delivered: stored.reached, started, replayed: stored.known };
  }

  async #store(engine: Engine, publication: NewPublication): Promise<PublishOutcome> {
    const { id, event: name, key } = publication;
    const { clock, store } = engine.options;
    const { tenant } = this.#tenancy;
    const said = publicationDigest(publication);
    const fact = await engine.rows.encodeFact(publicationFact(publication));
    const request = { tenant, id, name, ...(key !== undefined && { key }), digest: said, fact, at: clock.now() };
    const stored = await store.publish(request).catch((error: unknown) => {
      // It may be durable all the same.
      engine.inbox.sweep();
      throw error;
    });
    if (stored.digest === said) return stored;
    throw publicationConflict(id);
  }

  /** Tells the runs that waited. Those that this node does not own are told by the node that does. */
  async #tell(engine: Engine, publication: NewPublication, { known, position, delivered }: PublishOutcome): Promise<void> {
    const { tenant } = this.#tenancy;
    const owned = delivered.filter(({ shard }) => engine.ownership.epochOf(shard) !== undefined);
    // Whoever published it first may have died before it told them.
    if (known) engine.inbox.sweep();
    else if (publication.key === undefined) await this.#tellNow(engine, publication, position, owned);
    // What a run found when it looked back may be on its way to it, and comes first.
    else if (owned.length > readOneByOne) engine.inbox.sweep();
    else for (const { run, shard } of owned) engine.inbox.deliver({ tenant, run, shard });
    engine.wakeUps.tell(delivered.map(({ shard }) => shard));
    // The next owner has read the inbox, perhaps before this was in it: told again, it reads it again.
    if (!engine.ownership.holds) throw new ApiError("This node no longer owns its shards; try again.", { code: "NOT_OWNER" });
  }

  async #tellNow(engine: Engine, publication: NewPublication, position: number, runs: PublishOutcome["delivered"]): Promise<void> {
    const { tenant } = this.#tenancy;
    const mail = { fact: { ...publicationFact(publication), position }, inbox: publicationMessage(publication.id) };
    for (const [index, { run, shard }] of runs.entries()) {
      if (index % toldAtOnce === toldAtOnce - 1) await new Promise<void>((resolve) => engine.options.loop.immediate(resolve));
      engine.deliver({ tenant, run, shard }, mail);
    }
  }

  /** Starts what it triggers; rejects when one of the starts does, after all of them have been tried. */
  async #start({ id }: NewPublication, triggers: readonly Trigger[]): Promise<Started[]> {
    const idempotencyKey = startKeyOf(id);
    const starts = triggers.map(async ({ workflow, input }): Promise<Started> => {
      const started = await this.#anywhere().start({ workflow, input, idempotencyKey });
      return { workflow, id: started.id, runId: started.runId };
    });
    const outcomes = await Promise.allSettled(starts);
    return outcomes.map((outcome) => {
      if (outcome.status === "rejected") throw outcome.reason;
      return outcome.value;
    });
  }
}

function checkPublication(event: string, key: string | undefined): void {
  checkName(event, "the name of an event");
  if (key !== undefined) checkEventKey(key, `a publication of event "${event}"`);
}

/** What is to be published; `limit` is that of the payload's bytes. Throws for whatever is wrong with it. */
export function newPublication(publication: Omit<NewPublication, "payload">, payload: unknown, limit: number): NewPublication {
  const { event, key } = publication;
  checkPublication(event, key);
  return { ...publication, payload: encodePayload(payload, { limit, what: `payload of event "${event}"` }) };
}

/** What makes two publications the same. */
export const publicationDigest = ({ event, key, payload }: NewPublication): string => digest([event, key, payload]);

/** What its receivers get, but for its position. */
export function publicationFact({ id, event, key, payload }: NewPublication): Extract<Incoming, { type: "EventReceived" }> {
  return { type: "EventReceived", message: publicationMessage(id), name: event, payload, ...(key !== undefined && { key }) };
}

/** Another publication has the id. */
export function publicationConflict(id: string): ApiError {
  return new ApiError(`"${id}" names another publication already. Use a new idempotency key (or id) for a new publication.`, {
    code: "IDEMPOTENCY_CONFLICT",
  });
}

const longestKey = 255;
/** What a header holds. */
const plainId = /^[\x21-\x7e]+$/;

/** The key of what a publication starts, which is sent on to other nodes like any other. */
function startKeyOf(id: string): string {
  const whole = `publication:${id}`;
  return whole.length <= longestKey && plainId.test(id) ? whole : `publication:${encodeURIComponent(id).slice(0, 200)}:${digest(id)}`;
}

/** The workflows that an event triggers, with their inputs; throws when one of them does not take the payload. */
function triggersOf(engine: Engine, event: string, payload: unknown, what: string): Trigger[] {
  return engine.options.registry.triggeredBy(event).map(({ definition, trigger }) => {
    const input = parse(trigger.schema, payload, what);
    parse(definition.input, input, `${what}, as the input of workflow "${definition.name}",`);
    return { workflow: definition.name, input };
  });
}
