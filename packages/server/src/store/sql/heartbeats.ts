import type { EffectKey, Heartbeat, InstanceKey } from "../../engine/ports/store.ts";
import { latestHeartbeats } from "../latest-heartbeats.ts";
import { checkStorable, isStorable } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";
import { effectLists } from "./key-lists.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export async function saveHeartbeats(query: SqlQuery, all: readonly Heartbeat[]): Promise<void> {
  if (all.length === 0) return;
  for (const { tenant, run, effect, details } of all) checkStorable({ tenant, run, effect, details });
  const beats = latestHeartbeats(all);
  await query("write", "select wovyr.save_heartbeats_1($1, $2, $3, $4, $5, $6, $7)::text", [
    beats.length,
    textList(beats.map(({ tenant }) => tenant)),
    textList(beats.map(({ run }) => run)),
    textList(beats.map(({ effect }) => effect)),
    arrayLiteral(beats.map(({ attempt }) => attempt)),
    arrayLiteral(beats.map(({ at }) => at)),
    textList(beats.map(({ details }) => details)),
  ]);
}

export async function readHeartbeats(query: SqlQuery, { tenant, run }: InstanceKey): Promise<readonly Heartbeat[]> {
  if (!isStorable(tenant) || !isStorable(run)) return [];
  const rows = await query("read", "select * from wovyr.heartbeats_1($1, $2)", [tenant, run]);
  return rows.map(([effect, attempt, at, details]) => ({
    tenant,
    run,
    effect: String(effect),
    attempt: Number(attempt),
    at: Number(at),
    details: String(details),
  }));
}

export async function dropHeartbeats(query: SqlQuery, keys: readonly EffectKey[]): Promise<void> {
  const lists = effectLists(keys);
  if (lists !== undefined) await query("write", "select wovyr.drop_heartbeats_1($1, $2, $3)::text", lists);
}

/** Reads the whole table, which no commit needs: there is one row for each attempt under way and for what died of late. */
export async function expireHeartbeats(query: SqlQuery, before: number): Promise<void> {
  await query("write", "delete from wovyr.heartbeats where at < $1::bigint", [before]);
}
