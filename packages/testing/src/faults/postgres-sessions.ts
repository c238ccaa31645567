/** Ends sessions of a Postgres database, as an administrator or a failover does. */
import { WovyrError } from "@wovyr/sdk";
import { checkOptions } from "@wovyr/sdk/internal";

export type CutOptions = {
  /** Only sessions of this `application_name` (those of a store are called `wovyr`); default: of every one. */
  readonly application?: string;
  /** Sessions that stay: by `application_name`, or by the number of their server process. */
  readonly except?: string | number | readonly (string | number)[];
};

/** Milliseconds. */
const patience = 10_000;

/** Ends the sessions of the database that `url` names, but for its own; returns how many, once they are gone. */
export async function cutSessions(url: string, options: CutOptions = {}): Promise<number> {
  checkOptions(options, ["application", "except"], "cutSessions()");
  if (!/^postgres(ql)?:\/\//.test(url))
    throw new WovyrError("cutSessions() takes the URL of a Postgres database: postgres://user@host:5432/database", {
      code: "INVALID_OPTION",
    });
  const except = [options.except ?? []].flat();
  const names = except.filter((each) => typeof each === "string");
  const pids = except.filter((each) => typeof each === "number");
  const connect = await driver();
  const sql = connect(url, { max: 1, fetch_types: false, onnotice: () => {}, connection: { application_name: "wovyr-cut" } });
  try {
    const ended = await sql<{ pid: number; done: boolean }[]>`
      select pid, pg_terminate_backend(pid) as done from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
        and (${options.application ?? null}::text is null or application_name = ${options.application ?? null}::text)
        and application_name <> all (array(select jsonb_array_elements_text(${JSON.stringify(names)}::text::jsonb)))
        and pid <> all (array(select jsonb_array_elements_text(${JSON.stringify(pids)}::text::jsonb)::integer))`;
    const gone = ended.filter(({ done }) => done).map(({ pid }) => pid);
    const began = performance.now();
    for (;;) {
      const [row] = await sql<{ left: number }[]>`
        select count(*)::integer as left from pg_stat_activity
        where pid = any (array(select jsonb_array_elements_text(${JSON.stringify(gone)}::text::jsonb)::integer))`;
      if (row === undefined || row.left === 0) return gone.length;
      if (performance.now() - began > patience) throw new Error(`${row.left} sessions did not end within ${patience} ms`);
      await sql`select pg_sleep(0.005)`;
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function driver(): Promise<typeof import("postgres")> {
  try {
    return (await import("postgres")).default;
  } catch (cause) {
    throw new WovyrError('cutSessions() needs the package "postgres": npm install --save-dev postgres', { code: "INVALID_OPTION", cause });
  }
}
