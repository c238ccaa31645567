/** Whom to ask of several databases, and what to make of several answers. */
import { type Store, StoreUnavailableError } from "../../engine/ports/store.ts";
import type { Database } from "./database.ts";

type Ask<T> = (store: Store, database: Database) => Promise<T>;

/** All of them, side by side; rejects when one does. */
export function askAll<T>(databases: readonly Database[], ask: Ask<T>): Promise<readonly T[]> {
  return Promise.all(databases.map((database) => database.ask((store) => ask(store, database))));
}

/** All that answer; rejects when none does. */
export async function askThoseThere<T>(databases: readonly Database[], ask: Ask<T>): Promise<readonly T[]> {
  const answers = await Promise.allSettled(databases.map((database) => database.ask((store) => ask(store, database))));
  const given = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  const failures = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as unknown] : []));
  const refusal = failures.find((error) => !(error instanceof StoreUnavailableError));
  if (refusal !== undefined || given.length === 0) throw refusal ?? failures[0];
  return given;
}

/** The first answer that there is, of all that are asked side by side; rejects when there is none and one could not be asked. */
export async function findIn<T>(databases: readonly Database[], ask: Ask<T | undefined>): Promise<T | undefined> {
  const answers = await Promise.allSettled(databases.map((database) => database.ask((store) => ask(store, database))));
  for (const answer of answers) if (answer.status === "fulfilled" && answer.value !== undefined) return answer.value;
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  return undefined;
}
