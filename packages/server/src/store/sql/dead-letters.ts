/** Dead letters outside of turns. */
import type { DeadLetter, DeadLetterFilter, DeadLetterKind, DeadLetterPage, EffectKey } from "../../engine/ports/store.ts";
import { checkStorable, isStorable } from "../storable.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { effectLists } from "./key-lists.ts";

/** Later than any dead letter. */
const endOfTime = Number.MAX_SAFE_INTEGER;

export async function addDeadLetter(query: SqlQuery, letter: DeadLetter): Promise<void> {
  const { tenant, run, effect, at, kind, workflow, id, name, attempts, failure } = letter;
  checkStorable({ tenant, run, effect, workflow, id, name, failure });
  await query(
    "write",
    `insert into wovyr.dead_letters (tenant, run, effect, at, kind, workflow, id, name, attempts, failure)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
    [tenant, run, effect, at, kind, workflow, id, name, attempts, failure],
  );
}

export async function listDeadLetters(
  query: SqlQuery,
  tenant: string,
  filter: DeadLetterFilter,
  { after, limit }: DeadLetterPage,
): Promise<readonly DeadLetter[]> {
  const { workflow = null, kind = null, id = null, name = null } = filter;
  const params = [tenant, workflow, kind, id, name, after?.at ?? endOfTime, after?.run ?? "", after?.effect ?? "", limit];
  if (params.some((value) => typeof value === "string" && !isStorable(value))) return [];
  return (await query("read", "select * from wovyr.dead_letters_1($1, $2, $3, $4, $5, $6, $7, $8, $9)", params)).map(readLetter);
}

export async function getDeadLetter(query: SqlQuery, { tenant, run, effect }: EffectKey): Promise<DeadLetter | undefined> {
  if (![tenant, run, effect].every(isStorable)) return undefined;
  const [row] = await query("read", "select * from wovyr.dead_letter_1($1, $2, $3)", [tenant, run, effect]);
  return row && readLetter(row);
}

export async function dropDeadLetters(query: SqlQuery, keys: readonly EffectKey[]): Promise<void> {
  const lists = effectLists(keys);
  if (lists !== undefined) await query("write", "select wovyr.drop_dead_letters_1($1, $2, $3)::text", lists);
}

function readLetter([tenant, run, effect, at, kind, workflow, id, name, attempts, failure]: readonly SqlValue[]): DeadLetter {
  return {
    tenant: String(tenant),
    run: String(run),
    effect: String(effect),
    at: Number(at),
    kind: kind as DeadLetterKind,
    workflow: String(workflow),
    id: String(id),
    name: String(name),
    attempts: Number(attempts),
    failure: String(failure),
  };
}
