/** Who is compared, in the order of the columns. */
export type Peer = {
  readonly name: string;
  readonly title: string;
  /** Whose versions are printed; none for what is built here. */
  readonly packages: readonly string[];
  /** Where what happened is kept, and which settings differ from the defaults. */
  readonly settings: string;
  readonly recovers: boolean;
  readonly ours: boolean;
};

export const peers: readonly Peer[] = [
  {
    name: "wovyr",
    title: "Wovyr",
    packages: [],
    settings: "Postgres; client and orchestrator in one process; defaults",
    recovers: true,
    ours: true,
  },
  {
    name: "wovyr-http",
    title: "Wovyr, HTTP",
    packages: [],
    settings: "Postgres; the SDK's client in another process than the orchestrator; defaults; recovery is that of Wovyr in process",
    recovers: false,
    ours: true,
  },
  {
    name: "dbos",
    title: "DBOS Transact",
    packages: ["@dbos-inc/dbos-sdk"],
    settings: "Postgres; in process, workflows called as functions; pool of 20 connections, LISTEN/NOTIFY on (default), 200 runs in flight",
    recovers: true,
    ours: false,
  },
  {
    name: "openworkflow",
    title: "OpenWorkflow",
    packages: ["openworkflow"],
    settings:
      "Postgres; client and worker in one process; worker concurrency 100, as in its own benchmark; workers ask for runs every 100 ms to 1 s when idle, clients for results every 1 s, neither can be set; throughput is read from the database",
    recovers: true,
    ours: false,
  },
  {
    name: "absurd",
    title: "Absurd",
    packages: ["absurd-sdk"],
    settings:
      "Postgres; client and worker in one process; concurrency 100, pollInterval 10 ms, claimTimeout 10 s, pool of 20 connections; clients ask for results after 50 ms and then less often, which cannot be set; throughput is read from the database",
    recovers: true,
    ours: false,
  },
  {
    name: "restate",
    title: "Restate",
    packages: ["@restatedev/restate-server", "@restatedev/restate-sdk", "@restatedev/restate-sdk-clients"],
    settings:
      "its own log on the local disk, fsync on (default), one node; endpoint and client in one process, the server in another; defaults, 200 runs in flight",
    recovers: true,
    ours: false,
  },
];
