/**
 * What holds at the end of every case, read from the database when nobody works on it any more.
 *
 * 1. A closed run has no timer, no message and no work; an open one has something that will wake it.
 * 2. An activity ran exactly as often as history says, or, where attempts were lost with their process before they began, less often.
 * 3. Every history replays without a divergence and ends in the state that its row shows.
 */
import assert from "node:assert/strict";
import { type AnyWorkflow, WovyrError } from "@wovyr/sdk";
import { defaultLimits, type HistoryFact, InstanceState, type Turn } from "@wovyr/sdk/internal";
import { Instance, type InstanceHost } from "../../src/engine/instance.ts";
import { Replay } from "../../src/engine/replay.ts";
import { Turns } from "../../src/engine/turns.ts";
import { systemLoop } from "../../src/platform/system.ts";
import type { SqlDriver } from "../../src/store/sql/driver.ts";
import type { Ground } from "./ground.ts";
import { countBy, executions } from "./record.ts";
import { workflows } from "./workflows.ts";

export type RunRow = {
  readonly run: string;
  readonly id: string;
  readonly workflow: string;
  readonly status: string;
  readonly tail: number;
};
export type Ledger = { readonly runs: readonly RunRow[]; readonly turns: ReadonlyMap<string, readonly Turn[]> };

/** Reads everything; checks it; returns it for further questions. */
export async function endOfCase({
  directory,
  sql,
  each,
}: Pick<Ground, "directory" | "sql"> & Partial<Pick<Ground, "each">>): Promise<Ledger> {
  const read = async (driver: SqlDriver) => {
    await checkRows(driver);
    return readLedger(driver);
  };
  const ledgers = each === undefined ? [await sql(read)] : await each(read);
  const ledger = {
    runs: ledgers.flatMap(({ runs }) => runs),
    turns: new Map(ledgers.flatMap(({ turns }) => [...turns])),
  };
  checkExecutions(directory, ledger);
  for (const row of ledger.runs) await checkReplay(row, ledger.turns.get(row.run) ?? []);
  return ledger;
}

async function none(driver: SqlDriver, what: string, query: string): Promise<void> {
  const rows = await driver.query("read", query, []);
  assert.deepEqual(rows.slice(0, 10), [], `${rows.length} ${what}`);
}

async function checkRows(driver: SqlDriver): Promise<void> {
  const of = (table: string) => `wovyr.${table} x where x.tenant = i.tenant and x.run = i.run`;
  await none(
    driver,
    "closed runs have a timer, a message or work",
    `select i.run, i.workflow, i.status from wovyr.instances i where i.closed_at is not null
      and (i.busy or exists (select from ${of("timers")}) or exists (select from ${of("inbox")}))`,
  );
  await none(
    driver,
    "open runs have nothing to wake them",
    `select i.run, i.workflow, i.status from wovyr.instances i where i.status = 'open' and not i.busy
      and not exists (select from ${of("timers")}) and not exists (select from ${of("inbox")})
      and not exists (select from wovyr.history x where x.tenant = i.tenant and x.run = i.run and x.events like '%"EventAwaited"%')
      and not exists (select from wovyr.instances c where c.closed_at is null and c.parent like '%' || i.run || '%')`,
  );
  for (const table of ["timers", "inbox"])
    await none(
      driver,
      `rows of ${table} belong to no run`,
      `select x.run from wovyr.${table} x where not exists (select from wovyr.instances i where i.tenant = x.tenant and i.run = x.run)`,
    );
  await none(driver, "messages wait for another database", "select x.run, x.name from wovyr.outbox x");
  await none(
    driver,
    "runs whose turns do not follow on each other",
    `select i.run from wovyr.instances i where i.tail <> (select coalesce(sum(h.count), 0) from wovyr.history h where h.tenant = i.tenant and h.run = i.run)
      or exists (select from wovyr.history h where h.tenant = i.tenant and h.run = i.run and h.seq > 1
        and not exists (select from wovyr.history p where p.tenant = h.tenant and p.run = h.run and p.seq + p.count = h.seq))`,
  );
}

async function readLedger(driver: SqlDriver): Promise<Ledger> {
  const rows = await driver.query("read", "select run, id, workflow, status, tail from wovyr.instances order by run", []);
  const runs = rows.map(([run, id, workflow, status, tail]) => ({
    run: String(run),
    id: String(id),
    workflow: String(workflow),
    status: String(status),
    tail: Number(tail),
  }));
  const turns = new Map<string, Turn[]>();
  const history = await driver.query(
    "read",
    "select run, seq, at::double precision, node, events from wovyr.history order by run, seq",
    [],
  );
  for (const [run, seq, at, node, events] of history) {
    const known = turns.get(String(run)) ?? [];
    known.push({ seq: Number(seq), at: Number(at), node: String(node), events: JSON.parse(String(events)) as HistoryFact[] });
    turns.set(String(run), known);
  }
  return { runs, turns };
}

/** How often history says that an attempt began, and how many of those were lost, by `<run>/<effect>`. */
export function attemptsOf(ledger: Ledger): Map<string, { begun: number; lost: number; outcomes: number }> {
  const attempts = new Map<string, { begun: number; lost: number; outcomes: number }>();
  for (const [run, turns] of ledger.turns) {
    const state = new InstanceState();
    for (const turn of turns) {
      state.beginTurn(turn.at);
      for (const fact of turn.events) {
        state.fold(fact);
        if (!("effect" in fact)) continue;
        const key = `${run}/${fact.effect}`;
        const count = attempts.get(key) ?? { begun: 0, lost: 0, outcomes: 0 };
        const running = state.activities.get(fact.effect)?.state === "Running";
        if (running && ["ActivityScheduled", "AttemptStarted", "AttemptLost"].includes(fact.type)) count.begun += 1;
        if (fact.type === "AttemptLost") count.lost += 1;
        if (fact.type === "ActivityCompleted" || fact.type === "ActivityFailed") count.outcomes += 1;
        if (count.begun > 0) attempts.set(key, count);
      }
      state.endTurn();
    }
  }
  return attempts;
}

function checkExecutions(directory: string, ledger: Ledger): void {
  const real = countBy(executions(directory), (execution) => execution.key);
  const attempts = attemptsOf(ledger);
  for (const [key, count] of real) {
    const { begun = 0, lost = 0 } = attempts.get(key) ?? {};
    assert.ok(count <= begun, `${key} ran ${count} times, and history knows of ${begun} attempts`);
    assert.ok(count >= begun - lost, `${key} ran ${count} times, and history knows of ${begun} attempts of which ${lost} were lost`);
  }
}

const definitions = new Map<string, AnyWorkflow>(workflows.map((workflow) => [workflow.name, workflow]));

async function checkReplay(row: RunRow, turns: readonly Turn[]): Promise<void> {
  const workflow = definitions.get(row.workflow);
  // Code that never yields cannot be replayed; its run is parked.
  if (workflow === undefined || row.status === "parked" || row.tail === 0) return;
  const start = turns[0]?.events.find((fact) => fact.type === "InstanceStarted");
  const runner = new Turns(systemLoop, () => {});
  const instance = new Instance(
    {
      tenant: "default",
      run: row.run,
      id: row.id,
      shard: 0,
      workflow: row.workflow,
      version: workflow.version,
      correlationId: start?.correlationId,
      parent: start?.parent,
    },
    workflow.definition,
    replayHost(runner),
  );
  const failure = await new Promise<Error | undefined>((resolve) => {
    runner.add(new Replay(instance, turns, row.tail, runner, resolve));
  });
  assert.equal(failure, undefined, `run ${row.run} of ${row.workflow} diverges`);
  const shown = instance.state.closed ? instance.state.status : "open";
  assert.equal(shown, row.status, `the row of run ${row.run} says ${row.status}`);
}

function replayHost(runner: Turns): InstanceHost {
  const never = () => {
    throw new WovyrError("a replay asks for nothing");
  };
  return {
    now: () => 0,
    group: "default",
    mayAct: () => false,
    deferred: never,
    newRunId: never,
    limits: defaultLimits,
    eventSchema: () => undefined,
    judged: (_instance, fact) => fact,
    isQueued: () => false,
    announce: never,
    settle: never,
    turnEnded: never,
    turnBroke: never,
    jobDone: (instance) => runner.done(instance),
  };
}
