/** The report on the terminal. */
import { cpus, totalmem } from "node:os";
import type { FamilyResult } from "./family.ts";
import type { Floor } from "./floor.ts";
import { median } from "./measure.ts";
import type { Row } from "./row.ts";

const columns = ["", "median", "min – max", "of the floor", "reach"] as const;

export function machineLines(database: string): string[] {
  const [first] = cpus();
  return [
    `${cpus().length} × ${first?.model.trim() ?? "unknown processor"}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, ${process.platform} ${process.arch}`,
    `Node ${process.versions.node} (V8 ${process.versions.v8}); ${database}`,
    process.execArgv.includes("--conditions=source")
      ? "Code: the TypeScript sources through tsx, whose wrappers around every function cost a fifth of the throughput (see README)"
      : "Code: as built for publishing",
    "The database shares these cores with the orchestrator and, in the HTTP rows, with the client.",
  ];
}

export function familyLines({ title, rows, floor, peakRss }: FamilyResult, hasFloor: boolean): string[] {
  const cells = rows.map((row) => cellsOf(row, floor));
  const notes = rows.map((row) => row.note);
  const beside = hasFloor ? `, floor just before: INSERT p50 ${format(floor.insert)} ms, batch ${format(floor.batch)} rows/s` : "";
  return [
    "",
    `${title} (peak RSS ${(peakRss / 2 ** 20).toFixed(0)} MB${beside})`,
    ...layOut([[...columns], ...cells], [undefined, ...notes]),
  ];
}

export function floorLines(floors: readonly Floor[]): string[] {
  const line = (name: string, unit: string, values: readonly number[]) => [
    name,
    `${format(median(values))} ${unit}`,
    range(values),
    "",
    "",
  ];
  return [
    "",
    "Floor: the bare database through postgres.js, measured before each family of rows; its spread tells how quiet the machine was",
    ...layOut([
      [...columns],
      line(
        "INSERT of one row, p50",
        "ms",
        floors.map((floor) => floor.insert),
      ),
      line(
        "INSERT of 1,000 rows",
        "rows/s",
        floors.map((floor) => floor.batch),
      ),
    ]),
  ];
}

function cellsOf(row: Row, floor: Floor): string[] {
  const value = median(row.values);
  const ratio = row.against === undefined ? "" : `${format(value / floor[row.against])} ×`;
  return [row.name, `${format(value)} ${row.unit}`, row.values.length > 1 ? range(row.values) : "", ratio, reachOf(row, value, floor)];
}

function reachOf({ reach, unit }: Row, value: number, floor: Floor): string {
  if (reach === undefined) return "";
  if ("atLeast" in reach) return verdict(`≥ ${format(reach.atLeast)} ${unit}`, value >= reach.atLeast);
  if ("atMost" in reach) return verdict(`≤ ${format(reach.atMost)} ${unit}`, value <= reach.atMost);
  return verdict(`≤ ${reach.inserts} × INSERT`, value <= reach.inserts * floor.insert);
}

const verdict = (text: string, reached: boolean) => `${text} ${reached ? "✓" : "✗"}`;

function range(values: readonly number[]): string {
  return `${format(Math.min(...values))} – ${format(Math.max(...values))}`;
}

function format(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3);
}

function layOut(lines: readonly (readonly string[])[], notes: readonly (string | undefined)[] = []): string[] {
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const laid = lines.map((line) =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
  return laid.flatMap((line, at) => (notes[at] === undefined ? [`  ${line}`] : [`  ${line}`, `      ${notes[at]}`]));
}
