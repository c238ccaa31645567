import type { ParentLink } from "@wovyr/sdk/internal";
import type { HistoryRow, InboxMessage, InstanceRow, RunOrigin, StoredStatus } from "../../engine/ports/store.ts";
import { decodeAttributes } from "./attribute-text.ts";
import type { SqlValue } from "./driver.ts";
import { separator } from "./text-list.ts";

/** Reads what `wovyr.instance_1` wrote. */
export function readInstance(text: string): InstanceRow {
  const fields = text.split(separator);
  const field = (at: number): string => fields[at] as string;
  return {
    tenant: field(0),
    run: field(1),
    id: field(2),
    shard: Number(field(3)),
    workflow: field(4),
    version: field(5),
    status: field(6) as StoredStatus,
    busy: field(7) === "1",
    tail: Number(field(8)),
    nonce: field(9),
    createdAt: Number(field(10)),
    ...(field(11) !== "" && { closedAt: Number(field(11)) }),
    ...(field(12) !== "" && { parent: JSON.parse(field(12)) as ParentLink }),
    ...(field(13) !== "" && { correlationId: field(13) }),
    ...(field(14) !== "" && { origin: JSON.parse(field(14)) as RunOrigin }),
    attributes: decodeAttributes(field(15)),
  };
}

/** Reads seq, count, at, node and events. */
export function readTurn(row: readonly SqlValue[]): HistoryRow {
  const [seq, count, at, node, events] = row;
  return {
    seq: seq as number,
    count: count as number,
    at: at as number,
    node: node as string,
    events: events as string,
  };
}

/** Reads tenant, run, shard, message, fact and position. */
export function readMessage([tenant, run, shard, message, fact, position]: readonly SqlValue[]): InboxMessage & {
  readonly position: number;
} {
  return {
    tenant: String(tenant),
    run: String(run),
    shard: Number(shard),
    message: String(message),
    fact: String(fact),
    position: Number(position),
  };
}
