/** One line of the table, as a family of rows reports it. */
import type { Floor } from "./floor.ts";
import type { Throughput } from "./measure.ts";

export type Row = {
  readonly name: string;
  readonly unit: string;
  /** One value per run. */
  readonly values: readonly number[];
  /** Which part of the floor the value is divided by. */
  readonly against?: keyof Floor;
  readonly reach?: Reach;
  readonly note?: string;
};

export type Reach =
  /** In the row's unit. */
  | { readonly atLeast: number }
  | { readonly atMost: number }
  /** Times the bare INSERT. */
  | { readonly inserts: number };

export function throughputRow(name: string, unit: string, runs: readonly Throughput[], more: Pick<Row, "against" | "reach">): Row {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const theirs = runs.map((run) => run.theirs).filter((value) => value !== undefined);
  const ours = `CPU per unit: ${mean(runs.map((run) => run.ours)).toFixed(0)} µs here`;
  return {
    name,
    unit,
    values: runs.map((run) => run.perSecond),
    ...more,
    note: theirs.length === 0 ? ours : `${ours}, ${mean(theirs).toFixed(0)} µs in Postgres`,
  };
}
