/** Fills a database with finished one-step instances, as the engine would have left them, without running them. */
import postgres from "postgres";

const perStatement = 100_000;

/** The tables and functions must be there already. Autovacuum leaves the tables alone from then on, so that statistics come only when asked for. */
export async function fillFinished(url: string, count: number): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    for (const table of ["instances", "history"]) await sql.unsafe(`alter table wovyr.${table} set (autovacuum_enabled = false)`);
    for (let first = 0; first < count; first += perStatement) {
      const last = Math.min(count, first + perStatement) - 1;
      await sql.unsafe(instances(first, last));
      await sql.unsafe(history(first, last));
    }
    await sql`checkpoint`;
  } finally {
    await sql.end();
  }
}

export async function analyze(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql`analyze`;
    await sql`checkpoint`;
  } finally {
    await sql.end();
  }
}

/** Run ids of the past days: a prefix of day and time that rises, and ten characters at random, as `newRunId` makes them. */
const run = "'250101' || lpad(n::text, 6, '0') || substr(md5(n::text), 1, 10)";
const at = "1735689600000 + n";
const nonce = "'bench-host:1:abcdefgh#' || n";

function instances(first: number, last: number): string {
  return `insert into wovyr.instances
      (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
    select ${at}, ${at} + 3, n % 256, 4, false, 'default', ${run}, ${run}, 'bench-one-step', '1', 'Completed', ${nonce}, null, ${run}
    from generate_series(${first}, ${last}) n`;
}

function history(first: number, last: number): string {
  const started = `'[{"type":"InstanceStarted","id":"' || ${run} || '","workflow":"bench-one-step","version":"1","input":"1","seed":"' || md5(n::text)
    || '","correlationId":"' || ${run} || '"},{"type":"ActivityScheduled","effect":"1","name":"bench-next","input":"1","digest":"' || substr(md5(n::text), 1, 14) || '"}]'`;
  const ended = `'[{"type":"ActivityCompleted","effect":"1","attempt":1,"output":"2"},{"type":"InstanceCompleted","output":"2"}]'`;
  return `insert into wovyr.history (at, seq, count, tenant, run, node, events)
    select ${at} + turn, 1 + 2 * turn, 2, 'default', ${run}, 'bench-host:1:abcdefgh', case turn when 0 then ${started} else ${ended} end
    from generate_series(${first}, ${last}) n, generate_series(0, 1) turn`;
}
