import { type AdmissionAsk, admissionFacts, admissionMessage, supersededMessage, type Told } from "../../engine/ports/admissions.ts";
import { checkStorable } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";
import { startSlot } from "./flush-parameters.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export async function admit(query: SqlQuery, asks: readonly AdmissionAsk[]): Promise<readonly Told[]> {
  if (asks.length === 0) return [];
  for (const { tenant, name, run } of asks) checkStorable({ tenant, name, run: run?.run });
  const rows = await query("write", "select * from wovyr.admit_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", [
    asks.length,
    textList(asks.map(({ tenant }) => tenant)),
    textList(asks.map(({ name }) => name)),
    arrayLiteral(asks.map(({ capacity }) => capacity)),
    textList(asks.map(({ onLimit }) => onLimit)),
    textList(asks.map(({ run }) => run?.run ?? "")),
    arrayLiteral(asks.map(({ run }) => run?.shard ?? -1)),
    admissionMessage,
    admissionFacts.admitted,
    admissionFacts.refused,
    supersededMessage,
    admissionFacts.superseded,
  ]);
  return rows.map(([tenant, run, shard]) => ({ tenant: String(tenant), run: String(run), shard: Number(shard) }));
}

export async function dropStartKey(query: SqlQuery, tenant: string, workflow: string, key: string, run: string): Promise<void> {
  checkStorable({ tenant, workflow, key, run });
  await query("write", "delete from wovyr.start_keys where tenant = $1 and slot = $2 and run = $3", [
    tenant,
    startSlot(workflow, key),
    run,
  ]);
}
