/**
 * Outcomes of transactional steps.
 *
 * 1. The first outcome of an effect wins, whoever writes it: the step's own transaction, by the statement below, or `saveStepOutcome`. One who comes while
 *    another's transaction is open waits for its end.
 */
import type { InstanceKey, StepOutcome } from "../../engine/ports/store.ts";
import { checkStorable, isStorable } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";

/**
 * For the transaction of a step: tenant, run, effect, milliseconds since the epoch, and the outcome (a payload). When it inserts no row, somebody was first
 * and the transaction has to be rolled back.
 */
export const insertStepOutcome =
  "insert into wovyr.step_outcomes (tenant, run, effect, at, outcome) values ($1, $2, $3, $4, $5) on conflict (tenant, run, effect) do nothing";

/** Outcomes that one statement looks at. */
const expireStep = 1_000;

export async function saveStepOutcome(
  query: SqlQuery,
  step: StepOutcome,
): Promise<{ readonly won: boolean; readonly outcome: string | null }> {
  const { tenant, run, effect, at, outcome } = step;
  checkStorable({ tenant, run, effect, outcome: outcome ?? undefined });
  const [row] = await query("write", "select * from wovyr.save_step_outcome_1($1, $2, $3, $4, $5)", [tenant, run, effect, at, outcome]);
  const [won, winner] = row ?? [];
  return { won: won === true, outcome: typeof winner === "string" ? winner : null };
}

export async function readStepOutcomes(query: SqlQuery, { tenant, run }: InstanceKey): Promise<readonly StepOutcome[]> {
  if (!isStorable(tenant) || !isStorable(run)) return [];
  const rows = await query("read", "select * from wovyr.step_outcomes_1($1, $2)", [tenant, run]);
  return rows.map(([effect, at, outcome]) => ({
    tenant,
    run,
    effect: String(effect),
    at: Number(at),
    outcome: typeof outcome === "string" ? outcome : null,
  }));
}

export async function expireStepOutcomes(query: SqlQuery, before: number): Promise<void> {
  for (let since: number | null = 0; since !== null; ) {
    const [row] = await query("write", "select wovyr.expire_step_outcomes_1($1, $2, $3)", [since, before, expireStep]);
    const [next] = row ?? [];
    since = typeof next === "number" ? next : null;
  }
}
