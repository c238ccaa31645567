/** What the database itself can do, through the same driver, at the same time: every row is read beside it. */
import postgres from "postgres";
import { latencies, median, percentile } from "./measure.ts";

export type Floor = {
  /** p50 of one bare INSERT of one row, in milliseconds: its own transaction, its own flush to disk. */
  readonly insert: number;
  /** Rows per second of INSERTs of 1,000 rows each, one after another. */
  readonly batch: number;
};

const batchRows = 1_000;
const rowText = "x".repeat(200);

export async function measureFloor(url: string, seconds: number): Promise<Floor> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await sql`create table bench_floor (id bigserial primary key, value text)`;
    const one = () => sql`insert into bench_floor (value) values (${rowText})`;
    const values = `{${Array.from({ length: batchRows }, () => rowText).join(",")}}`;
    const many = () => sql.unsafe("insert into bench_floor (value) select unnest($1::text[])", [values], { prepare: true });
    await latencies(50, one);
    const insert = percentile(await latencies(Math.round(400 * seconds), one), 0.5);
    await latencies(3, many);
    const batch = (batchRows * 1_000) / percentile(await latencies(Math.round(30 * seconds), many), 0.5);
    return { insert, batch };
  } finally {
    await sql`drop table if exists bench_floor`.catch(() => {});
    await sql.end();
  }
}

export function medianFloor(floors: readonly Floor[]): Floor {
  return { insert: median(floors.map((floor) => floor.insert)), batch: median(floors.map((floor) => floor.batch)) };
}
