/** What applications asked for in transactions of their own, read and removed; they write it by the functions of 0003_requests.sql. */
import type { AppRequest, AppRequests } from "../../engine/ports/store.ts";
import type { SqlQuery } from "./driver.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export function sqlRequests(query: SqlQuery): AppRequests {
  return {
    async list(shards, { after = 0, limit }) {
      const rows = await query("read", "select * from wovyr.requests_1($1, $2, $3)", [arrayLiteral([...new Set(shards)]), after, limit]);
      return rows.map(([position, tenant, run, message, kind, fact, shard]) => ({
        position: Number(position),
        tenant: String(tenant),
        run: String(run),
        shard: Number(shard),
        message: String(message),
        kind: kind as AppRequest["kind"],
        fact: String(fact),
      }));
    },

    async drop(requests) {
      if (requests.length === 0) return;
      await query("write", "select wovyr.drop_requests_1($1, $2, $3)::text", [
        textList(requests.map(({ tenant }) => tenant)),
        textList(requests.map(({ run }) => run)),
        textList(requests.map(({ message }) => message)),
      ]);
    },
  };
}
