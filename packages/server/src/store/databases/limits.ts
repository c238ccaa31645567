/**
 * Limits over several databases: each lives in one, by its tenant and its name.
 *
 * 1. Of a database that does not answer nothing is granted; the limits of the others are not held up.
 */

import type { PermitAsk, PermitGrant, TokenAsk, TokenGrant } from "../../engine/ports/limits.ts";
import { StoreUnavailableError } from "../../engine/ports/store.ts";
import { shardHash } from "../../engine/shard-of.ts";
import type { Database } from "./database.ts";

/** When tokens are asked for again of a database that does not answer, in milliseconds. */
const askAgain = 1_000;

export function exchangePermits(databases: readonly Database[], owner: string, lease: number, asks: readonly PermitAsk[]) {
  return byDatabase<PermitAsk, PermitGrant | undefined>(
    databases,
    asks,
    (database, own) => database.ask((store) => store.exchangePermits(owner, lease, own)),
    undefined,
  );
}

export function takeTokens(databases: readonly Database[], asks: readonly TokenAsk[]): Promise<readonly TokenGrant[]> {
  return byDatabase<TokenAsk, TokenGrant>(databases, asks, (database, own) => database.ask((store) => store.takeTokens(own)), {
    tokens: 0,
    wait: askAgain,
  });
}

/** One answer for each ask, in order; rejects when no database answers. */
async function byDatabase<A extends { readonly tenant: string; readonly name: string }, T>(
  databases: readonly Database[],
  asks: readonly A[],
  ask: (database: Database, own: readonly A[]) => Promise<readonly T[]>,
  unanswered: T,
): Promise<readonly T[]> {
  const answers: T[] = asks.map(() => unanswered);
  const failures: unknown[] = [];
  const groups = databases.map((database) => ({
    database,
    places: [...asks.keys()].filter((at) => homeOf(asks[at] as A, databases) === database.place),
  }));
  const asked = groups.filter(({ places }) => places.length > 0);
  await Promise.all(
    asked.map(async ({ database, places }) => {
      try {
        const given = await ask(
          database,
          places.map((at) => asks[at] as A),
        );
        for (const [index, at] of places.entries()) answers[at] = given[index] as T;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        failures.push(error);
      }
    }),
  );
  if (failures.length > 0 && failures.length === asked.length) throw failures[0];
  return answers;
}

const homeOf = ({ tenant, name }: { readonly tenant: string; readonly name: string }, { length }: readonly Database[]): number =>
  shardHash(tenant, name) % length;
