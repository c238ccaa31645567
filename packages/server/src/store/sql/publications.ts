/** Publications over SQL; how they and those who wait for them find each other is told in 0001_commit.sql. */
import type { Publication, PublishOutcome } from "../../engine/ports/store.ts";
import { checkStorable } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";
import { parseNumbers, separator } from "./text-list.ts";
import { topicOf } from "./topic.ts";

/** Publications that one statement removes. */
const expireStep = 1_000;

export async function publish(query: SqlQuery, publication: Publication): Promise<PublishOutcome> {
  const { tenant, id, name, key, digest, fact, at } = publication;
  checkStorable({ tenant, id, name, key, digest, fact });
  const [row] = await query("write", "select * from wovyr.publish_1($1, $2, $3, $4, $5, $6, $7, $8)", [
    tenant,
    id,
    name,
    key ?? null,
    topicOf(name, key),
    digest,
    fact,
    at,
  ]);
  const [known, first, position, published, reached, runs, shards] = row ?? [];
  const names = typeof runs === "string" ? runs.split(separator).slice(0, -1) : [];
  const places = typeof shards === "string" ? parseNumbers(shards) : [];
  return {
    known: known === true,
    digest: String(first),
    position: Number(position),
    at: Number(published),
    reached: Number(reached),
    delivered: names.map((run, place) => ({ run, shard: places[place] as number })),
  };
}

export async function expirePublications(query: SqlQuery, before: number): Promise<void> {
  for (let gone = expireStep; gone === expireStep; ) {
    const [row] = await query("write", "select wovyr.expire_publications_1($1, $2)", [before, expireStep]);
    gone = Number(row?.[0]);
  }
}
