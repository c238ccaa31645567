/** What a SQL store offers to be one of several databases: 0007_databases.sql. */
import {
  type OutboxKey,
  type OutboxRow,
  type Parcel,
  publicationRun,
  publicationShard,
  type SetMembership,
  type StorePart,
} from "../../engine/ports/databases.ts";
import { publicationMessage } from "../../engine/ports/store.ts";
import { usedAlone } from "../used-alone.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { startSlot } from "./flush-parameters.ts";
import { publish } from "./publications.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export function sqlPart(label: string, query: SqlQuery): StorePart {
  return {
    label,

    async inspect() {
      const [row] = await query(
        "read",
        "select exists (select from wovyr.groups), s.id, s.place, s.size from (select 1) one left join wovyr.database_sets s on true",
        [],
      );
      const [used, ...member] = row ?? [];
      return { used: used === true, member: readMember(member) };
    },

    async join({ id, place, size }) {
      const [row] = await query("write", "select * from wovyr.join_set_1($1, $2, $3)", [id, place, size]);
      const member = row && readMember(row);
      if (member === undefined) throw usedAlone(label);
      return member;
    },

    async group(name, shards, first) {
      const asked = first === "next" ? -1 : (first ?? null);
      const [row] = await query("write", "select * from wovyr.group_1($1, $2, $3)", [name, shards, asked]);
      return row && { first: Number(row[0]), shards: Number(row[1]) };
    },

    publish(publication, targets) {
      const { tenant, id } = publication;
      const parcel = JSON.stringify({ kind: "publication", publication } satisfies Parcel);
      const name = publicationMessage(id);
      return publish(
        query,
        publication,
        JSON.stringify(targets.map((target) => ({ turn: 1, tenant, run: publicationRun, shard: publicationShard, name, target, parcel }))),
      );
    },

    async listOutbox(target, shards, { after = 0, limit }) {
      const rows = await query("read", "select * from wovyr.outbox_1($1, $2, $3, $4)", [
        target,
        arrayLiteral([...new Set(shards)]),
        after,
        limit,
      ]);
      return rows.map(
        ([position, shard, tenant, run, name, parcel]): OutboxRow => ({
          position: Number(position),
          shard: Number(shard),
          target,
          tenant: String(tenant),
          run: String(run),
          name: String(name),
          parcel: JSON.parse(String(parcel)) as Parcel,
        }),
      );
    },

    async dropOutbox(keys: readonly OutboxKey[]) {
      if (keys.length === 0) return;
      await query("write", "select wovyr.drop_outbox_1($1, $2, $3, $4)::text", [
        textList(keys.map(({ tenant }) => tenant)),
        textList(keys.map(({ run }) => run)),
        textList(keys.map(({ name }) => name)),
        arrayLiteral(keys.map(({ target }) => target)),
      ]);
    },

    async receive(parcels) {
      if (parcels.length === 0) return [];
      const [row] = await query("write", "select wovyr.receive_1($1)", [JSON.stringify(parcels.map(itemOf))]);
      const answers = String(row?.[0]).slice(1, -1).split(",");
      return parcels.map((_, at) => (answers[at] === "t" ? "done" : "taken"));
    },
  };
}

function readMember([id, place, size]: readonly SqlValue[]): SetMembership | undefined {
  return id === null || id === undefined ? undefined : { id: String(id), place: Number(place), size: Number(size) };
}

/** What `wovyr.receive_1` takes. */
function itemOf(parcel: Exclude<Parcel, { kind: "publication" }>): object {
  if (parcel.kind === "send") return { child: false, ...parcel.message };
  const { tenant, at, child } = parcel;
  const { id, workflow, version, parent, correlationId, startKey } = child.instance;
  const { message, fact } = child.start;
  return {
    child: true,
    ...{ tenant, run: child.run, shard: child.shard, message, fact, at, id, workflow, version },
    parent: parent === undefined ? null : JSON.stringify(parent),
    correlation: correlationId ?? null,
    slot: startKey === undefined ? null : startSlot(workflow, startKey.key),
    digest: startKey?.digest ?? null,
  };
}
