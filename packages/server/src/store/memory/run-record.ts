import type { Attributes, HistoryRow, InstanceRow, NewInstance, RunOrigin, StoredStatus } from "../../engine/ports/store.ts";
import type { Timer } from "./timer-queue.ts";

/** One run and all that belongs to it alone. */
export type RunRecord = {
  readonly tenant: string;
  readonly run: string;
  readonly shard: number;
  readonly instance: NewInstance;
  readonly createdAt: number;
  readonly origin: RunOrigin | undefined;
  status: StoredStatus;
  busy: boolean;
  tail: number;
  nonce: string;
  closedAt: number | undefined;
  attributes: Attributes;
  readonly turns: HistoryRow[];
  readonly timers: Map<string, Timer>;
};

export function toRow(record: RunRecord): InstanceRow {
  const { id, workflow, version, parent, correlationId } = record.instance;
  return {
    tenant: record.tenant,
    run: record.run,
    id,
    shard: record.shard,
    workflow,
    version,
    status: record.status,
    busy: record.busy,
    tail: record.tail,
    nonce: record.nonce,
    createdAt: record.createdAt,
    ...(record.closedAt !== undefined && { closedAt: record.closedAt }),
    ...(parent !== undefined && { parent: { ...parent } }),
    ...(correlationId !== undefined && { correlationId }),
    ...(record.origin !== undefined && { origin: record.origin }),
    attributes: record.attributes,
  };
}
