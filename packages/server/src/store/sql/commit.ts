/**
 * Commits a flush: one statement, one round trip.
 *
 * 1. A flush that the database rolled back because of others is sent again, a bounded number of times; nothing else is ever sent again.
 * 2. A turn with a successor, which comes alone, is one statement with it.
 * 3. A turn that comes alone, and writes nothing but its run, has a statement of its own (commit-alone.ts).
 * 4. A flush that the database refuses because of its values is halved until the turns that are to blame stand alone; those fail, the others commit.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { WovyrError } from "@wovyr/sdk";
import type { Flush, FlushOutcome, TurnWrite } from "../../engine/ports/store.ts";
import { flushParts } from "../flush-parts.ts";
import { turnProblem } from "../storable.ts";
import { aloneParameters, aloneStatement } from "./commit-alone.ts";
import type { SqlDriver, SqlValue } from "./driver.ts";
import { classify, unavailable } from "./failure-class.ts";
import { type FlushParameters, flushParameters } from "./flush-parameters.ts";
import { outboxItems } from "./outbox-items.ts";
import { importParameterCount, importParameters } from "./run-import.ts";
import { taskItems } from "./task-items.ts";
import { parseNumbers } from "./text-list.ts";

const parameterCount = 75;
const places = (from: number, count: number) => Array.from({ length: count }, (_, at) => `$${from + at}`).join(",");
const flushed = `wovyr.commit_1(${places(1, parameterCount)})`;
const statement = `select done, rejected, receivers from ${flushed}`;
const succeeding = `select done, rejected, receivers, case when done is null then wovyr.succeed_1(${places(parameterCount + 1, importParameterCount)}) end from ${flushed}`;
/** A flush that is about tasks, or other databases, as well says so in the same statement; any other is spared even the question. */
const also = (text: string, what: "commit_tasks_1" | "commit_outbox_1", parameter: number) =>
  text.replace(" from ", `, case when done is null or done <> '{}' then wovyr.${what}(done, $${parameter}) end::text from `);
/** By whether there is a successor, tasks, and an outbox. */
const statements = new Map<string, string>();
for (const [succeeds, base, count] of [
  [false, statement, parameterCount],
  [true, succeeding, parameterCount + importParameterCount],
] as const) {
  const withTasks = also(base, "commit_tasks_1", count + 1);
  statements.set(statementKey(succeeds, false, false), base);
  statements.set(statementKey(succeeds, true, false), withTasks);
  statements.set(statementKey(succeeds, false, true), also(base, "commit_outbox_1", count + 1));
  statements.set(statementKey(succeeds, true, true), also(withTasks, "commit_outbox_1", count + 2));
}

function statementKey(...parts: readonly boolean[]): string {
  return parts.map(Number).join("");
}

const tries = 6;
const pause = 5;

type Outcome = {
  readonly done: Set<string>;
  readonly rejectedChildren: Set<string>;
  readonly failed: Map<string, Error>;
  readonly found: Set<string>;
};

export async function commit(driver: SqlDriver, flush: Flush): Promise<FlushOutcome> {
  const outcome: Outcome = {
    done: new Set(),
    rejectedChildren: new Set(),
    failed: new Map(),
    found: new Set(),
  };
  for (const turns of flushParts(flush.turns)) await commitPart(driver, { fence: flush.fence, turns }, outcome);
  return outcome;
}

async function commitPart(driver: SqlDriver, flush: Flush, outcome: Outcome): Promise<void> {
  if (flush.turns.length === 0) return;
  try {
    const alone = aloneParameters(flush);
    if (alone !== undefined) {
      const [done] = await send(driver, aloneStatement, alone);
      if (done === true) outcome.done.add((flush.turns[0] as TurnWrite).run);
      return;
    }
    const parameters = flushParameters(flush);
    if (parameters.order.length > 0) read(await sendAll(driver, parameters), parameters, outcome);
  } catch (error) {
    if (classify(error) !== "refused") throw unavailable(error);
    const [turn] = flush.turns;
    if (turn !== undefined && flush.turns.length === 1) {
      outcome.failed.set(turn.run, refusal(turn, error));
      return;
    }
    const half = flush.turns.length >> 1;
    await commitPart(driver, { fence: flush.fence, turns: flush.turns.slice(0, half) }, outcome);
    await commitPart(driver, { fence: flush.fence, turns: flush.turns.slice(half) }, outcome);
  }
}

async function sendAll(driver: SqlDriver, { order, values: flushed }: FlushParameters): Promise<readonly unknown[]> {
  const successor = order[0]?.successor;
  const tasks = taskItems(order);
  const outbox = outboxItems(order);
  const text = statements.get(statementKey(successor !== undefined, tasks !== undefined, outbox !== undefined)) as string;
  const values = [...flushed];
  if (successor !== undefined) values.push(...importParameters(successor));
  if (tasks !== undefined) values.push(tasks);
  if (outbox !== undefined) values.push(outbox);
  return send(driver, text, values);
}

/** The row that it returns. */
async function send(driver: SqlDriver, text: string, values: readonly SqlValue[]): Promise<readonly unknown[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [row] = await driver.query("write", text, values);
      return row ?? [];
    } catch (error) {
      if (classify(error) !== "again" || attempt === tries) throw error;
      await sleep(pause * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}

function read([done, rejected, receivers]: readonly unknown[], { order, children }: FlushParameters, outcome: Outcome): void {
  if (typeof done === "string") for (const place of parseNumbers(done)) outcome.done.add((order[place - 1] as TurnWrite).run);
  else for (const turn of order) outcome.done.add(turn.run);
  if (typeof rejected === "string") for (const place of parseNumbers(rejected)) outcome.rejectedChildren.add(children[place - 1] as string);
  if (typeof receivers === "string") for (const place of parseNumbers(receivers)) outcome.found.add((order[place - 1] as TurnWrite).run);
}

function refusal(turn: TurnWrite, error: unknown): Error {
  const problem = turnProblem(turn);
  if (problem !== undefined) return problem;
  const reason = error instanceof Error ? error.message : String(error);
  return new WovyrError(`the database refuses the turn of run ${turn.run} at ${turn.tail}: ${reason}`, {
    code: "PAYLOAD_UNSERIALIZABLE",
    cause: error,
  });
}
