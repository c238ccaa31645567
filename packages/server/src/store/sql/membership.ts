import type { Beat, Membership, NodeRow, ShardRow } from "../../engine/ports/store.ts";
import { checkStorable } from "../storable.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { arrayLiteral, parseNumbers, separator, textList } from "./text-list.ts";

/** Milliseconds: what a database takes that is only busy. */
const shortestDeadline = 1_000;

export async function beat(query: SqlQuery, beat: Beat): Promise<Membership> {
  const { group, shards, node, url, release, workflows, draining, lease, dead = [], give, take } = beat;
  checkStorable({ group, node, url, release });
  const parameters: SqlValue[] = [
    ...[group, shards, node, url ?? null, release, textList(workflows), draining, lease, textList(dead)],
    arrayLiteral(give.map(({ shard }) => shard)),
    arrayLiteral(give.map(({ epoch }) => epoch)),
    textList(give.map(({ needs = "" }) => needs)),
    take === "free",
    arrayLiteral(take === "free" ? [] : take),
  ];
  const rows = await query(
    "write",
    "select * from wovyr.beat_1($1, $2, $3, $4, $5, $6, $7, $8, string_to_array($9, E'\\x1f'), $10, $11, $12, $13, $14)",
    parameters,
    // An answer that comes later says nothing any more, and the next beat should not wait for it.
    Math.max(lease, shortestDeadline),
  );
  const nodes = rows.flatMap(readNode);
  return { nodes, shards: rows.flatMap(readShards).sort((a, b) => a.shard - b.shard) };
}

export async function leave(query: SqlQuery, group: string, node: string): Promise<void> {
  await query("write", "select wovyr.leave_1($1, $2)::text", [group, node]);
}

function readNode([node, url, release, workflows, draining, remaining]: readonly SqlValue[]): NodeRow[] {
  if (node === null) return [];
  return [
    {
      node: String(node),
      ...(url !== null && { url: String(url) }),
      release: String(release),
      workflows: String(workflows).split(separator).slice(0, -1),
      draining: draining === true,
      remaining: Number(remaining),
    },
  ];
}

function readShards([node, , , , , , shards, epochs, needs]: readonly SqlValue[]): ShardRow[] {
  if (shards === null) return [];
  const raised = parseNumbers(String(epochs));
  const needed = needs === null ? [] : String(needs).split(separator);
  return parseNumbers(String(shards)).map((shard, place) => {
    const need = needed[place];
    return {
      shard,
      epoch: raised[place] as number,
      ...(node !== null && { owner: String(node) }),
      ...(need !== undefined && need !== "" && { needs: need }),
    };
  });
}
