import { isOpenStatus, type RunImport } from "../../engine/ports/store.ts";
import { checkStorable } from "../storable.ts";
import { encodeAttributes } from "./attribute-text.ts";
import type { SqlQuery } from "./driver.ts";
import { arrayLiteral, textList } from "./text-list.ts";

export type ImportOutcome = "done" | "id-taken" | "run-exists";

export async function importRun(query: SqlQuery, { row, attributes, turns, inbox }: RunImport): Promise<ImportOutcome> {
  const { tenant, run, id, workflow, version, correlationId } = row;
  checkStorable({ tenant, run, id, workflow, version, correlationId });
  for (const { node, events } of turns) checkStorable({ node, events });
  const messages = isOpenStatus(row.status) ? inbox : [];
  for (const { message, fact } of messages) checkStorable({ message, fact });
  const parameters = Array.from({ length: 23 }, (_, at) => `$${at + 1}`).join(", ");
  const [answer] = await query("write", `select wovyr.import_1(${parameters})`, [
    tenant,
    run,
    row.shard,
    row.tail,
    row.busy,
    row.createdAt,
    row.closedAt ?? null,
    id,
    workflow,
    version,
    row.status,
    row.parent === undefined ? null : JSON.stringify(row.parent),
    correlationId ?? null,
    Object.keys(attributes).length === 0 ? null : encodeAttributes(attributes),
    turns.length,
    arrayLiteral(turns.map(({ seq }) => seq)),
    arrayLiteral(turns.map(({ count }) => count)),
    arrayLiteral(turns.map(({ at }) => at)),
    textList(turns.map(({ node }) => node)),
    textList(turns.map(({ events }) => events)),
    messages.length,
    textList(messages.map(({ message }) => message)),
    textList(messages.map(({ fact }) => fact)),
  ]);
  return answer?.[0] as ImportOutcome;
}
