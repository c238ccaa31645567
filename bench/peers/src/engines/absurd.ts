/**
 * Absurd: stored procedures in Postgres and a library in this process.
 *
 * 1. Its schema is not part of its npm package: WOVYR_BENCH_ABSURD_SQL names the file (`sql/absurd.sql` of the release with the package's version).
 * 2. Workers and clients ask again and again. For workers the pause is set to 10 ms; clients begin with 50 ms, which cannot be set, so throughput is taken from the database.
 * 3. The claim on a run whose worker died ends after `claimTimeout`, which every step prolongs.
 */
import { readFileSync } from "node:fs";
import { Absurd } from "absurd-sdk";
import pg from "pg";
import { Arrivals } from "../arrivals.ts";
import { type Engine, type EngineOptions, timeOfDay, type WorkloadName } from "../engine.ts";
import { Tally } from "../tally.ts";

const connections = 20;
const worker = { concurrency: 100, pollInterval: 0.01, claimTimeout: 10 };
const silent = { log() {}, info() {}, warn() {}, error: console.error };

type Step = { step<T>(name: string, body: () => Promise<T>): Promise<T> };

const stepOf = (context: Step) => context.step("step", async () => timeOfDay());

export async function start({ database, lastStep }: EngineOptions): Promise<Engine> {
  const pool = new pg.Pool({ connectionString: database, max: connections });
  pool.on("error", () => {});
  await installSchema(pool);
  const app = new Absurd({ db: pool, log: silent });
  await app.createQueue();
  const tally = new Tally();
  const arrivals = new Arrivals();
  app.registerTask<number, number>({ name: "sequence" }, async (steps, context) => {
    const first = await stepOf(context);
    let last = first;
    for (let done = 1; done < steps; done += 1) last = await stepOf(context);
    tally.add();
    return last - first;
  });
  app.registerTask<number, number>({ name: "fanOut" }, async (width, context) => {
    const times = await Promise.all(Array.from({ length: width }, () => stepOf(context)));
    tally.add();
    return times.length;
  });
  app.registerTask<string, null>({ name: "waiting" }, async (event, context) => {
    arrivals.arrive(event);
    await context.awaitEvent(event);
    return null;
  });
  app.registerTask<number, null>({ name: "long" }, async (steps, context) => {
    for (let done = 0; done < steps; done += 1) await stepOf(context);
    await context.step("last-step", lastStep);
    return null;
  });
  const completed = async () => {
    const { rows } = await pool.query<{ count: string }>("select count(*) from absurd.t_default where state = 'completed'");
    return Number(rows[0]?.count);
  };
  const resultOf = async (taskID: string): Promise<unknown> => {
    const snapshot = await app.awaitTaskResult(taskID);
    if (snapshot.state !== "completed") throw new Error(`the task ended as ${snapshot.state}`);
    return snapshot.result;
  };
  await app.startWorker(worker);
  let events = 0;
  return {
    run: async (workload: WorkloadName, size) => Number(await resultOf((await app.spawn(workload, size)).taskID)),
    async runAll(workload, size, count) {
      const before = { returned: tally.returned, completed: await completed() };
      await Promise.all(Array.from({ length: count }, () => app.spawn(workload, size)));
      await tally.reaches(before.returned, count, async () => (await completed()) - before.completed);
    },
    async startWaiting() {
      events += 1;
      const event = `go-${process.pid}-${events}`;
      const arrival = arrivals.of(event);
      const { taskID } = await app.spawn("waiting", event);
      await arrival;
      return {
        async deliver() {
          await Promise.all([app.emitEvent(event), resultOf(taskID)]);
        },
      };
    },
    async startLong(steps) {
      await app.spawn("long", steps);
    },
    async close() {
      await app.close();
      await pool.end();
    },
  };
}

async function installSchema(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query("select 1 from pg_namespace where nspname = 'absurd'");
  if (rows.length > 0) return;
  const file = process.env.WOVYR_BENCH_ABSURD_SQL;
  if (file === undefined)
    throw new Error("its schema is not in its npm package: let WOVYR_BENCH_ABSURD_SQL name the sql/absurd.sql of the same release");
  await pool.query(readFileSync(file, "utf8"));
}
