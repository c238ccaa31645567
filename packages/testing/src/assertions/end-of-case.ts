/**
 * What must hold when a case has ended, whatever it was about.
 *
 * 1. Replay-clean: every stored history replays without divergence, and from each of its turn borders the code makes the next turn again as it is recorded.
 * 2. Conservation: nothing open belongs to a closed run, and every open run has something that can wake it.
 * 3. No attempt was executed that history does not know, and (when told) none is recorded that was not executed.
 * 4. What a caller was told is done is in the store: the run that was started, the event that was taken.
 * 5. The process has seen neither an unhandled rejection nor a warning.
 */
import type { AnyWorkflow } from "@wovyr/sdk";
import { checkOptions, foldHistory, type HistoryFact, InstanceState, type Turn } from "@wovyr/sdk/internal";
import { type InboxMessage, type InstanceRow, retryTimer, type TimerRow } from "@wovyr/server/internal";
import { checkFlag, checkFunction, refuse, shown } from "../checks.ts";
import type { TestEnvironment } from "../environment/environment.ts";
import { continueHistory, replayHistory } from "../replay/replay-bench.ts";

export type EndOfCaseOptions = {
  /** Every attempt in history was executed: true where no attempt was stopped before it began and nothing crashed. Default false. */
  readonly everyAttemptExecuted?: boolean;
  /** Runs that are left out of the replay check: their code was changed on purpose. */
  readonly skipReplay?: (row: InstanceRow) => boolean;
};

/** Histories of so many turns are gone on from every border; of longer ones, from as many borders as cost the same. */
const borderLimit = 60;

type StoredRun = { readonly row: InstanceRow; readonly turns: readonly Turn[]; readonly state: InstanceState };

/** Throws with everything that does not hold. */
export async function checkEndOfCase(environment: TestEnvironment, options: EndOfCaseOptions = {}): Promise<void> {
  if (!(environment instanceof Object) || typeof environment.settle !== "function")
    refuse(`checkEndOfCase() takes a test environment, not ${shown(environment)}`);
  checkOptions(options, ["everyAttemptExecuted", "skipReplay"], "checkEndOfCase()");
  checkFlag(options.everyAttemptExecuted, "`everyAttemptExecuted` of checkEndOfCase()");
  checkFunction(options.skipReplay, "`skipReplay` of checkEndOfCase()");
  if (!environment.running) await environment.restart();
  await environment.settle();
  const runs = await storedRuns(environment);
  const problems = [
    ...(await replayProblems(environment, runs, options)),
    ...(await conservationProblems(environment, runs)),
    ...runs.flatMap((run) => executionProblems(environment, run, options)),
    ...(await acknowledgedProblems(environment, runs)),
    ...environment.trouble,
  ];
  if (problems.length > 0) throw new Error(`at the end of the case:\n  ${problems.join("\n  ")}`);
}

async function storedRuns(environment: TestEnvironment): Promise<StoredRun[]> {
  const runs: StoredRun[] = [];
  for (let after: string | undefined; ; ) {
    const page = await environment.bareStore.listInstances("default", {}, { limit: 500, ...(after !== undefined && { after }) });
    for (const row of page) {
      const turns = await environment.turns(row.id, row.run);
      runs.push({ row, turns, state: foldHistory(turns) });
    }
    const last = page[page.length - 1];
    if (last === undefined || page.length < 500) return runs;
    after = last.run;
  }
}

// ── replay ───────────────────────────────────────────────────────────────────────────────────────────────

async function replayProblems(environment: TestEnvironment, runs: readonly StoredRun[], options: EndOfCaseOptions): Promise<string[]> {
  const problems: string[] = [];
  for (const { row, turns } of runs) {
    const workflow = environment.workflows.find((known) => known.name === row.workflow && known.version === row.version);
    if (workflow === undefined || options.skipReplay?.(row) === true) continue;
    const problem = await replayProblem(environment, workflow, row, turns);
    if (problem !== undefined) problems.push(`${row.workflow} ${row.run}: ${problem}`);
  }
  return problems;
}

async function replayProblem(
  environment: TestEnvironment,
  workflow: AnyWorkflow,
  row: InstanceRow,
  turns: readonly Turn[],
): Promise<string | undefined> {
  const options = { limits: environment.limits.execution, run: row.run };
  const { failure } = await replayHistory(workflow, turns, options);
  if (failure !== undefined) return `does not replay: ${failure.message}`;
  const step = Math.max(1, Math.ceil((turns.length / borderLimit) ** 2));
  for (const [index, turn] of turns.entries()) {
    if ((turns.length - 1 - index) % step !== 0) continue;
    if (turn.events.some((fact) => fact.type === "SideEffectRecorded" || fact.type === "Parked")) continue;
    const made = await continueHistory(workflow, turns, index, options);
    // It was made by code that did not ask for this change yet.
    if (
      made.some((fact) => fact.type === "Patched" && !turn.events.some((known) => known.type === "Patched" && known.patch === fact.patch))
    )
      continue;
    const difference = firstDifference(turn.events, made);
    if (difference !== undefined) return `turn ${index} is made otherwise after a replay of those before it: ${difference}`;
  }
  return undefined;
}

function firstDifference(recorded: readonly HistoryFact[], made: readonly HistoryFact[]): string | undefined {
  for (let at = 0; at < Math.max(recorded.length, made.length); at++) {
    const [was, is] = [recorded[at], made[at]].map((fact) => fact && comparable(fact));
    if (was !== is) return `event ${at} was ${was}, is ${is}`;
  }
  return undefined;
}

/** A fact without what is drawn anew each time: ids of children, and stacks, which the fields of an error may hold too. */
function comparable(fact: HistoryFact): string {
  return JSON.stringify(fact, (key, value) =>
    key === "run" || key === "stack" || key === "fields" || (key === "id" && fact.type === "ChildStarted") ? undefined : value,
  );
}

// ── conservation ─────────────────────────────────────────────────────────────────────────────────────────

async function conservationProblems(environment: TestEnvironment, runs: readonly StoredRun[]): Promise<string[]> {
  const { bareStore: store, engine } = environment;
  const { shards } = engine.ownership;
  const timers = await store.listTimers(shards, Number.MAX_SAFE_INTEGER, 1_000_000);
  const inbox = await store.listInbox(shards, { limit: 1_000_000 });
  const byRun = new Map(runs.map((run) => [run.row.run, run]));
  const problems: string[] = [];
  for (const timer of timers)
    if (byRun.get(timer.run)?.row.closedAt !== undefined) problems.push(`closed run ${timer.run} has an open timer ${timer.effect}`);
  for (const message of inbox) {
    const run = byRun.get(message.run);
    if (run === undefined) problems.push(`the inbox holds ${message.message} for unknown run ${message.run}`);
    else if (run.row.closedAt !== undefined) problems.push(`the inbox of closed run ${message.run} holds ${message.message}`);
  }
  for (const run of runs)
    problems.push(...runProblems(run, timers, inbox, byRun).map((problem) => `${run.row.workflow} ${run.row.run} ${problem}`));
  if (engine.waiters.count < 0 || engine.updates.count < 0) problems.push("more callers were told of results than waited");
  if (engine.waiters.count > 0 && runs.every((run) => run.row.closedAt !== undefined))
    problems.push(`${engine.waiters.count} callers wait for results although every run is closed`);
  return problems;
}

function runProblems(
  { row, state }: StoredRun,
  timers: readonly TimerRow[],
  inbox: readonly InboxMessage[],
  byRun: ReadonlyMap<string, StoredRun>,
): string[] {
  const problems: string[] = [];
  if (row.tail !== state.tail) problems.push(`has tail ${row.tail} and ${state.tail} events`);
  const mine = timers.filter((timer) => timer.run === row.run);
  const messages = inbox.filter((message) => message.run === row.run);
  if (state.closed) {
    const open = [
      ...state.activities.keys(),
      ...state.timers.keys(),
      ...state.waits.keys(),
      ...state.children.keys(),
      ...state.conditions,
      ...state.updates.keys(),
    ];
    if (open.length > 0) problems.push(`is closed with open effects: ${open.join(", ")}`);
    if (row.status !== state.status) problems.push(`is stored as ${row.status} and is ${state.status}`);
    for (const child of byRun.values())
      if (child.row.parent?.run === row.run && child.row.closedAt === undefined && !abandoned(child, byRun) && !cleaningUp(child))
        problems.push(`is closed, and its child ${child.row.run} goes on`);
    return problems;
  }
  if (state.held) {
    if (mine.length > 0) problems.push(`is ${row.status} with timer rows: ${mine.map((timer) => timer.effect).join(", ")}`);
    if (row.busy) problems.push(`is ${row.status} and stored as busy`);
    return problems;
  }
  const wanted = new Map<string, number>();
  for (const [effect, timer] of state.timers) wanted.set(effect, timer.due);
  for (const [effect, activity] of state.activities)
    if (activity.retryAt !== undefined && activity.state === "Retrying") wanted.set(retryTimer(effect), activity.retryAt);
  for (const timer of mine)
    if (wanted.get(timer.effect) !== timer.due) problems.push(`has a timer row ${timer.effect} that history does not know`);
  for (const effect of wanted.keys())
    if (!mine.some((timer) => timer.effect === effect)) problems.push(`waits for timer ${effect}, which has no row`);
  if (row.busy !== state.busy) problems.push(`is stored as ${row.busy ? "" : "not "}busy and is ${state.busy ? "" : "not "}so`);
  for (const [effect, open] of state.children) {
    const child = byRun.get(open.run);
    if (child?.row.closedAt === undefined && child !== undefined) continue;
    if ([...byRun.values()].some(({ row: other }) => goesOnFor(other, row.run, effect))) continue;
    if (!messages.some((message) => message.message === `child:${effect}`)) problems.push(`waits for child ${effect}, which is not open`);
  }
  // A condition may be met by an event or an update that the run handles; what is stuck waits for somebody's decision.
  const stuck = [...state.compensations.values()].filter((compensation) => compensation.state === "stuck").length;
  const sources = state.activities.size + state.timers.size + state.waits.size + state.children.size + state.conditions.size + stuck;
  if (sources + messages.length === 0) problems.push("is open and nothing can wake it");
  return problems;
}

/** Whether an open run is the child that a parent waits for with an effect: the one that was started, or one that took its place. */
const goesOnFor = ({ parent, closedAt }: InstanceRow, run: string, effect: string) =>
  closedAt === undefined && parent?.run === run && parent.effect === effect;

function abandoned(child: StoredRun, byRun: ReadonlyMap<string, StoredRun>): boolean {
  const { parent } = child.row;
  const started = byRun
    .get(parent?.run ?? "")
    ?.turns.flatMap((turn) => turn.events)
    .find((fact) => fact.type === "ChildStarted" && fact.effect === parent?.effect);
  return started?.type === "ChildStarted" && started.onParentClose === "abandon";
}

/** Whether a run was asked to end and is about it. */
const cleaningUp = ({ turns }: StoredRun) => turns.some((turn) => turn.events.some((fact) => fact.type === "CancelRequested"));

// ── what callers were told ───────────────────────────────────────────────────────────────────────────────

async function acknowledgedProblems(environment: TestEnvironment, runs: readonly StoredRun[]): Promise<string[]> {
  const { acknowledged, removed } = environment;
  const known = new Set(runs.map(({ row }) => row.run));
  const isLost = (run: string) => !known.has(run) && !removed.has(run);
  const problems: string[] = [];
  for (const told of acknowledged) {
    if (told.kind === "start" && isLost(told.run))
      problems.push(`the start of ${told.id} (${told.run}) was acknowledged, and there is no such run`);
    if (told.kind === "publication")
      for (const run of told.started.filter(isLost))
        problems.push(`publication ${told.id} of event "${told.name}" was acknowledged, and the run ${run} that it started is not there`);
  }
  return [...problems, ...(await lostEvents(environment, runs))];
}

/** Events that an instance was told by whoever waited for the answer. One that was repeated with its key is one message. */
async function lostEvents({ acknowledged, removed, bareStore, engine }: TestEnvironment, runs: readonly StoredRun[]): Promise<string[]> {
  const ids = new Map(runs.map(({ row }) => [row.run, row.id]));
  const stored = new Map<string, Set<string>>();
  const note = (id: string | undefined, fact: Pick<HistoryFact, "type"> & { readonly name?: string; readonly message?: string }) => {
    const { type, name, message = "" } = fact;
    if (type === "EventReceived") stored.set(`${id} ${name}`, (stored.get(`${id} ${name}`) ?? new Set()).add(message));
  };
  for (const { row, turns } of runs) for (const fact of turns.flatMap(({ events }) => events)) note(row.id, fact);
  for (const { run, fact } of await bareStore.listInbox(engine.ownership.shards, { limit: 1_000_000 }))
    note(ids.get(run), JSON.parse(fact));
  // What a run that is gone was told is gone with it.
  const partlyGone = new Set(removed.values());
  const problems: string[] = [];
  for (const { id, name, keys, others } of toldEvents(acknowledged)) {
    if (partlyGone.has(id)) continue;
    const messages = stored.get(`${id} ${name}`) ?? new Set();
    const unnamed = [...messages].filter((message) => !keys.has(message)).length;
    const lost = [...keys].filter((key) => !messages.has(key)).length + Math.max(0, others - unnamed);
    for (let count = 0; count < lost; count++)
      problems.push(`event "${name}" to ${id} was acknowledged, and is neither in history nor in the inbox`);
  }
  return problems;
}

type ToldEvents = { readonly id: string; readonly name: string; readonly keys: Set<string>; others: number };

/** By instance and name. */
function toldEvents(acknowledged: TestEnvironment["acknowledged"]): Iterable<ToldEvents> {
  const all = new Map<string, ToldEvents>();
  for (const told of acknowledged) {
    if (told.kind !== "event") continue;
    const { id, name, idempotencyKey } = told;
    const place = `${id} ${name}`;
    const same = all.get(place) ?? { id, name, keys: new Set(), others: 0 };
    all.set(place, same);
    if (idempotencyKey === undefined) same.others += 1;
    else same.keys.add(idempotencyKey);
  }
  return all.values();
}

// ── executions ───────────────────────────────────────────────────────────────────────────────────────────

function executionProblems(environment: TestEnvironment, { row, turns }: StoredRun, options: EndOfCaseOptions): string[] {
  const problems: string[] = [];
  for (const [effect, attempts] of recordedAttempts(turns)) {
    const executed = environment.executions.count(`${row.run}/${effect}`);
    if (executed > attempts)
      problems.push(`${row.workflow} ${row.run}: effect ${effect} was executed ${executed} times, history knows of ${attempts}`);
    if (options.everyAttemptExecuted === true && executed < attempts)
      problems.push(`${row.workflow} ${row.run}: effect ${effect} was executed ${executed} times, history has ${attempts} attempts`);
  }
  return problems;
}

/**
 * Attempts of each activity that the run itself made: the first, those that a retry or a lost process started, those that began again; of one that runs once at
 * most, those that were recorded as begun.
 */
function recordedAttempts(turns: readonly Turn[]): Map<string, number> {
  const attempts = new Map<string, number>();
  const recordedFirst = new Set<string>();
  const add = (effect: string) => attempts.set(effect, (attempts.get(effect) ?? 0) + 1);
  const state = new InstanceState();
  for (const turn of turns) {
    state.beginTurn(turn.at);
    for (const fact of turn.events) {
      state.fold(fact);
      if (fact.type === "ActivityScheduled" && fact.semantics === "atMostOnce") recordedFirst.add(fact.effect);
      const begins =
        fact.type === "AttemptStarted" ||
        ((fact.type === "ActivityScheduled" || (fact.type === "AttemptLost" && fact.cause === "crash")) && !recordedFirst.has(fact.effect));
      if (begins) add(fact.effect);
      if (fact.type !== "Forked" && fact.type !== "Imported") continue;
      if (fact.type === "Forked") attempts.clear();
      for (const [effect, activity] of state.activities) if (activity.state === "Running") add(effect);
    }
    state.endTurn();
  }
  return attempts;
}
