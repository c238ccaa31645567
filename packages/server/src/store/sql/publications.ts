/** Publications over SQL; how they and those who wait for them find each other is told in 0001_commit.sql. */
import type { Publication, PublishOutcome } from "../../engine/ports/store.ts";
import { checkPublication } from "../storable.ts";
import type { SqlQuery } from "./driver.ts";
import { parseNumbers, separator } from "./text-list.ts";
import { topicOf } from "./topic.ts";

/** Publications that one statement removes. */
const expireStep = 1_000;

/** `outbox`: what goes to other databases with a publication that is new, as `wovyr.commit_outbox_1` reads it. */
export async function publish(query: SqlQuery, publication: Publication, outbox?: string): Promise<PublishOutcome> {
  const { tenant, id, name, key, digest, fact, at } = publication;
  checkPublication(publication);
  const published = "select p.* from wovyr.publish_1($1, $2, $3, $4, $5, $6, $7, $8) p";
  const passedOn = published.replace(" from ", ", case when not p.known then wovyr.commit_outbox_1(null, $9) end::text from ");
  const [row] = await query("write", outbox === undefined ? published : passedOn, [
    tenant,
    id,
    name,
    key ?? null,
    topicOf(name, key),
    digest,
    fact,
    at,
    ...(outbox === undefined ? [] : [outbox]),
  ]);
  const [known, first, position, publishedAt, reached, runs, shards] = row ?? [];
  const names = typeof runs === "string" ? runs.split(separator).slice(0, -1) : [];
  const places = typeof shards === "string" ? parseNumbers(shards) : [];
  return {
    known: known === true,
    digest: String(first),
    position: Number(position),
    at: Number(publishedAt),
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
