/** Dead letters outside of turns. */
import type { DeadLetter, DeadLetterFilter, DeadLetterKind, DeadLetterPage, EffectKey } from "../../engine/ports/store.ts";
import { checkStorable, isStorable } from "../storable.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { effectLists } from "./key-lists.ts";

const columns = "tenant, run, effect, at::double precision, kind, workflow, id, name, attempts, failure";

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
  const params: SqlValue[] = [];
  const bind = (value: SqlValue, type: string): string => `$${params.push(value)}::${type}`;
  const conditions = [`tenant = ${bind(tenant, "text")}`];
  for (const field of ["workflow", "kind", "id", "name"] as const) {
    const wanted = filter[field];
    if (wanted !== undefined) conditions.push(`${field} = ${bind(wanted, "text")}`);
  }
  if (after !== undefined)
    conditions.push(`(at, run, effect) < (${bind(after.at, "bigint")}, ${bind(after.run, "text")}, ${bind(after.effect, "text")})`);
  if (params.some((value) => typeof value === "string" && !isStorable(value))) return [];
  const text = `select ${columns} from wovyr.dead_letters where ${conditions.join(" and ")}
order by at desc, run desc, effect desc limit ${bind(limit, "integer")}`;
  return (await query("read", text, params)).map(readLetter);
}

export async function getDeadLetter(query: SqlQuery, { tenant, run, effect }: EffectKey): Promise<DeadLetter | undefined> {
  if (![tenant, run, effect].every(isStorable)) return undefined;
  const text = `select ${columns} from wovyr.dead_letters where tenant = $1 and run = $2 and effect = $3`;
  const [row] = await query("read", text, [tenant, run, effect]);
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
