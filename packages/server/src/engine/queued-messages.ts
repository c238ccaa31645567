/**
 * Messages for a run whose owner does not answer: they are put into its inbox, where its next owner finds them.
 *
 * 1. A message has the name under which it was sent before, so that one that had arrived all the same counts once.
 * 2. What can be found out from the store and from the code that is here is checked. What only the run itself can judge (a key that was used for another
 *    message, a payload of an event that is declared nowhere here) is judged when the message reaches it, and comes to nothing if it is refused then.
 */
import { ApiError } from "@wovyr/sdk";
import { decodePayload, type Incoming, parse } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { mailIdentity } from "./mail.ts";
import { type Delivery, newMessageName } from "./messages.ts";
import { ofOtherGroup } from "./ownership-errors.ts";
import type { InstanceRow } from "./ports/store.ts";

/** Resolves when the message is durable. */
export const queue: Delivery = async (tenancy, id, options, make) => {
  const engine = tenancy.engine();
  const fact = make(options.idempotencyKey ?? newMessageName(engine), engine);
  const row = await tenancy.row(engine, id, options.runId);
  checkReceiver(engine, row);
  checkEvent(engine, row, fact);
  const { tenant, run, shard } = row;
  await engine.options.store.post([{ tenant, run, shard, message: mailIdentity(fact), fact: await engine.rows.encodeFact(fact) }]);
  engine.wakeUps.arrived({ tenant, run, shard });
  return { replayed: false };
};

function checkReceiver(engine: Engine, { tenant, id, run, shard, closedAt }: InstanceRow): void {
  if (shard !== engine.shardOf(tenant, id)) throw ofOtherGroup(`Run "${run}"`, engine.options.group);
  if (closedAt !== undefined) throw new ApiError(`Run "${run}" has ended; it takes no more messages.`, { code: "INSTANCE_CLOSED" });
}

function checkEvent(engine: Engine, { workflow, version }: InstanceRow, fact: Incoming): void {
  if (fact.type !== "EventReceived") return;
  const declared = engine.options.registry.event(workflow, version, fact.name);
  if (declared !== undefined) parse(declared.schema, decodePayload(fact.payload), `payload of event "${fact.name}"`);
}
