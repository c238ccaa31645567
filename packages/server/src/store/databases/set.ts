/**
 * Databases that are used as one know each other: each holds the id of the set, its own place in it, and how many they are.
 *
 * 1. The set is made when none of the databases is of one and none has been used by itself; all of them have to be there then, and the first draws the id.
 * 2. Everything that does not fit is refused before anything is written: another number or order of databases, one of another set, and one that is new
 *    among others that are in use, which would be the wrong one.
 * 3. A database may move: its address is not written down.
 */
import { randomUUID } from "node:crypto";
import { WovyrError } from "@wovyr/sdk";
import type { SetMembership } from "../../engine/ports/databases.ts";
import { usedAlone } from "../used-alone.ts";
import type { Database } from "./database.ts";

type Found = { readonly database: Database; readonly used: boolean; readonly member: SetMembership | undefined };

/** What a set is called that all databases were found to be of, or were made to be; `databases` in their order, some of them perhaps not open. */
export async function joinSet(databases: readonly Database[]): Promise<string> {
  const first = await Promise.all(databases.filter(({ store }) => store !== undefined).map(inspected));
  // A set that is being made is whole before any of it is used: what was seen before that is looked at again.
  const found = first.some(({ used }) => used)
    ? await Promise.all(first.map((each) => (each.member === undefined ? inspected(each.database) : each)))
    : first;
  const known = found.find(({ member }) => member !== undefined)?.member;
  if (known !== undefined) for (const each of found) checkFit(each, known.id, databases.length, found);
  const alone = found.find(({ used, member }) => used && member === undefined);
  if (alone !== undefined) throw usedAlone(alone.database.label);
  const missing = databases.find(({ store }) => store === undefined);
  const isNew = found.some(({ member }) => member === undefined);
  if (isNew && missing !== undefined)
    throw missing.unavailable("it could not be reached, and all databases have to be there when their set is made");
  let id = known?.id ?? randomUUID();
  for (const each of found) {
    if (each.member !== undefined) continue;
    const { place } = each.database;
    const member = await each.database.ask((store) => store.part.join({ id, place, size: databases.length }));
    // Another node may make the same set at the same time: what the first database says counts.
    if (place === 0) id = member.id;
    checkFit({ ...each, member }, id, databases.length, found);
  }
  return id;
}

/** Refuses one that is opened later than the others, unless it is of their set. */
export function checkMember(database: Database, member: SetMembership | undefined, id: string, size: number): void {
  if (member === undefined) throw foreign(database, "is of no set, though the others are in use");
  checkFit({ database, used: true, member }, id, size, []);
}

async function inspected(database: Database): Promise<Found> {
  return { database, ...(await database.askAnyway((store) => store.part.inspect())) };
}

function checkFit({ database, member }: Found, id: string, size: number, all: readonly Found[]): void {
  if (member === undefined) {
    if (all.some(({ used }) => used)) throw foreign(database, "is of no set, though the others are in use");
    return;
  }
  if (member.id !== id) throw foreign(database, "is of another set of databases than the others");
  if (member.size !== size) throw foreign(database, `is one of ${member.size} databases, and ${size} were given`);
  if (member.place !== database.place)
    throw foreign(database, `is number ${member.place + 1} of its set, and was given as number ${database.place + 1}`);
}

function foreign({ label }: Database, problem: string): WovyrError {
  return new WovyrError(`the database ${label} ${problem}: give all databases of one set, in the order in which the set was made`, {
    code: "STORE_INCOMPATIBLE",
  });
}
