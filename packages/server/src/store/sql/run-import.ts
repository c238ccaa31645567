import { type ImportOutcome, isOpenStatus, type RunImport } from "../../engine/ports/store.ts";
import { checkImport } from "../storable.ts";
import { encodeAttributes } from "./attribute-text.ts";
import type { SqlQuery, SqlValue } from "./driver.ts";
import { startSlot } from "./flush-parameters.ts";
import { arrayLiteral, textList } from "./text-list.ts";

/** How many parameters `import_1` and `succeed_1` have. */
export const importParameterCount = 26;

export async function importRun(query: SqlQuery, run: RunImport): Promise<ImportOutcome> {
  checkImport(run);
  const parameters = Array.from({ length: importParameterCount }, (_, at) => `$${at + 1}`).join(", ");
  const [answer] = await query("write", `select wovyr.import_1(${parameters})`, importParameters(run));
  return answer?.[0] as ImportOutcome;
}

export function importParameters({ row, attributes, turns, inbox, startKey }: RunImport): readonly SqlValue[] {
  const messages = isOpenStatus(row.status) ? inbox : [];
  return [
    row.tenant,
    row.run,
    row.shard,
    row.tail,
    row.busy,
    row.createdAt,
    row.closedAt ?? null,
    row.id,
    row.workflow,
    row.version,
    row.status,
    row.parent === undefined ? null : JSON.stringify(row.parent),
    row.correlationId ?? null,
    row.origin === undefined ? null : JSON.stringify(row.origin),
    Object.keys(attributes).length === 0 ? null : encodeAttributes(attributes),
    startKey === undefined ? null : startSlot(row.workflow, startKey.key),
    startKey === undefined ? null : startKey.digest,
    turns.length,
    arrayLiteral(turns.map(({ seq }) => seq)),
    arrayLiteral(turns.map(({ count }) => count)),
    arrayLiteral(turns.map(({ at }) => at)),
    textList(turns.map(({ node }) => node)),
    textList(turns.map(({ events }) => events)),
    messages.length,
    textList(messages.map(({ message }) => message)),
    textList(messages.map(({ fact }) => fact)),
  ];
}
