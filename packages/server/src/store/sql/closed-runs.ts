/** Closed runs: how they are found, and how they go. */

import type { InstanceKey, InstanceRow } from "../../engine/ports/store.ts";
import { runIdPrefix } from "../../engine/run-id.ts";
import type { SqlQuery } from "./driver.ts";
import { runLists } from "./key-lists.ts";
import { readInstance } from "./rows.ts";

export async function deleteRuns(query: SqlQuery, keys: readonly InstanceKey[]): Promise<number> {
  const lists = runLists(keys);
  if (lists === undefined) return 0;
  const [row] = await query("write", "select wovyr.delete_1($1, $2)", lists);
  return Number(row?.[0]);
}

export async function listClosedBefore(
  query: SqlQuery,
  before: number,
  { after, limit }: { after?: InstanceKey; limit: number },
): Promise<readonly InstanceRow[]> {
  const rows = await query("read", "select * from wovyr.closed_1($1, $2, $3, $4, $5)", [
    before,
    runIdPrefix(before),
    after?.tenant ?? "",
    after?.run ?? "",
    limit,
  ]);
  return rows.map(([instance]) => readInstance(String(instance)));
}
