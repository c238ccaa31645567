/** What a memory store offers to be one of several databases. */
import { publicationRun, publicationShard, type StorePart } from "../../engine/ports/databases.ts";
import { publicationMessage } from "../../engine/ports/store.ts";
import { checkPublication } from "../storable.ts";
import { usedAlone } from "../used-alone.ts";
import { shardCountMismatch } from "./shard-table.ts";
import type { Tables } from "./tables.ts";

/** `open` gives the tables while the store is open, and throws then. */
export function memoryPart(label: string, open: () => Tables): StorePart {
  return {
    label,

    async inspect() {
      const { shards, member } = open();
      return { used: !shards.isEmpty, member };
    },

    async join(member) {
      const tables = open();
      if (tables.member === undefined && !tables.shards.isEmpty) throw usedAlone(label);
      tables.member ??= member;
      return tables.member;
    },

    async group(name, count, first) {
      const { shards } = open();
      if (first === "next") shards.make(name, count);
      else if (first !== undefined) shards.make(name, count, first);
      const span = shards.span(name);
      if (span !== undefined && span.shards !== count) throw shardCountMismatch(name, span.shards, count);
      return span;
    },

    async publish(publication, targets) {
      const tables = open();
      checkPublication(publication);
      const published = tables.publish(publication);
      if (published.known) return published;
      const sender = { tenant: publication.tenant, run: publicationRun, shard: publicationShard };
      for (const target of targets)
        tables.outbox.add(sender, { name: publicationMessage(publication.id), target, parcel: { kind: "publication", publication } });
      return published;
    },

    async listOutbox(target, shards, { after = 0, limit }) {
      return open().outbox.list(target, new Set(shards), after, limit);
    },

    async dropOutbox(keys) {
      const { outbox } = open();
      for (const key of keys) outbox.remove(key);
    },

    async receive(parcels) {
      const tables = open();
      return parcels.map((parcel) => tables.receive(parcel));
    },
  };
}
