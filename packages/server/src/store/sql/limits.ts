import { type PermitAsk, type PermitGrant, partLength, type TokenAsk, type TokenGrant } from "../../engine/ports/limits.ts";
import { checkStorable } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export async function exchangePermits(
  query: SqlQuery,
  owner: string,
  lease: number,
  asks: readonly PermitAsk[],
): Promise<readonly PermitGrant[]> {
  if (asks.length === 0) return [];
  checkStorable({ owner });
  for (const { tenant, name } of asks) checkStorable({ tenant, name });
  const rows = await query("write", "select * from wovyr.permits_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", [
    owner,
    lease,
    asks.length,
    textList(asks.map(({ tenant }) => tenant)),
    textList(asks.map(({ name }) => name)),
    arrayLiteral(asks.map(({ capacity }) => capacity)),
    arrayLiteral(asks.map(({ inUse }) => inUse)),
    arrayLiteral(asks.map(({ wanted }) => wanted)),
    arrayLiteral(asks.map(({ oldest }) => oldest)),
    arrayLiteral(asks.map(({ evicts }) => evicts)),
  ]);
  return rows.map(([permits, evict, shared]) => ({ permits: Number(permits), evict: Number(evict), shared: isTrue(shared) }));
}

const isTrue = (value: unknown): boolean => value === true || value === "t" || value === "true";

export async function releasePermits(query: SqlQuery, owners: readonly string[]): Promise<void> {
  if (owners.length === 0) return;
  for (const owner of owners) checkStorable({ owner });
  await query("write", "delete from wovyr.permits where owner = any (string_to_array($1, E'\\x1f'))", [textList(owners)]);
}

export async function listPermitOwners(query: SqlQuery): Promise<readonly string[]> {
  const rows = await query("read", "select distinct owner from wovyr.permits order by owner", []);
  return rows.map(([owner]) => String(owner));
}

export async function takeTokens(query: SqlQuery, asks: readonly TokenAsk[]): Promise<readonly TokenGrant[]> {
  if (asks.length === 0) return [];
  for (const { tenant, name } of asks) checkStorable({ tenant, name });
  const rows = await query("write", "select * from wovyr.take_tokens_1($1, $2, $3, $4, $5, $6, $7)", [
    asks.length,
    textList(asks.map(({ tenant }) => tenant)),
    textList(asks.map(({ name }) => name)),
    arrayLiteral(asks.map(({ limit }) => limit)),
    arrayLiteral(asks.map(({ per }) => per)),
    arrayLiteral(asks.map(({ per }) => partLength(per))),
    arrayLiteral(asks.map(({ wanted }) => wanted)),
  ]);
  return rows.map(([tokens, wait]) => ({ tokens: Number(tokens), wait: Number(wait) }));
}

export async function expireLimits(query: SqlQuery): Promise<void> {
  await query("write", "delete from wovyr.permits where lease_until <= clock_timestamp()", []);
  await query("write", "delete from wovyr.tokens where expires_at <= floor(extract(epoch from clock_timestamp()) * 1000)", []);
}
