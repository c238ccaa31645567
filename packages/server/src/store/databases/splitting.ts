/**
 * What a turn says, by database: what is for runs of its own stays in it, all else goes into its outbox.
 *
 * 1. Parcels are written in the order in which a single database would apply them: children, then sends.
 * 2. Their names follow from the turn, so that the same turn written again writes the same parcels.
 */
import type { OutboxRow, OutboxWrite, Parcel } from "../../engine/ports/databases.ts";
import type { TurnWrite } from "../../engine/ports/store.ts";

/** The turn as its own database takes it. */
export function ownPart(turn: TurnWrite, placeOf: (shard: number) => number): TurnWrite {
  const own = placeOf(turn.shard);
  const isElsewhere = ({ shard }: { readonly shard: number }) => placeOf(shard) !== own;
  if (!turn.children.some(isElsewhere) && !turn.sends.some(isElsewhere)) return turn;
  const outbox: OutboxWrite[] = [];
  const put = (shard: number, parcel: Parcel) => outbox.push({ name: `${turn.tail + 1}.${outbox.length}`, target: placeOf(shard), parcel });
  for (const child of turn.children.filter(isElsewhere)) put(child.shard, { kind: "child", tenant: turn.tenant, at: turn.at, child });
  for (const message of turn.sends.filter(isElsewhere)) put(message.shard, { kind: "send", message });
  return {
    ...turn,
    children: turn.children.filter((child) => !isElsewhere(child)),
    sends: turn.sends.filter((send) => !isElsewhere(send)),
    outbox,
  };
}

/** The rows that a turn has put into the outbox, as they would be read from there. */
export function rowsOf({ tenant, run, shard, outbox = [] }: TurnWrite): readonly Omit<OutboxRow, "position">[] {
  return outbox.map((write) => ({ ...write, tenant, run, shard }));
}
