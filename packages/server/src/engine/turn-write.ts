/** What one turn writes to the store: its events, and the rows that follow from its plan. */
import { ApiError } from "@wovyr/sdk";
import {
  type Closing,
  decodePayload,
  type Failure,
  failureOf,
  type HistoryFact,
  type Incoming,
  type InstanceState,
  type LastPublication,
  type ParentLink,
} from "@wovyr/sdk/internal";
import { firstOfOpenChain } from "./chain.ts";
import type { HistoryRows } from "./history-row.ts";
import type { Instance, OpenTurn } from "./instance.ts";
import { mailIdentity } from "./mail.ts";
import type { NewIds } from "./new-ids.ts";
import type {
  Attributes,
  ChildWrite,
  DeadLetterWrite,
  InboxMessage,
  RunImport,
  StoredStatus,
  TurnWrite,
  WaitWrite,
} from "./ports/store.ts";
import type { TaskWrite } from "./ports/tasks.ts";
import { taskWrites } from "./task-writes.ts";
import type { ChildToStart, GivenUp, Send, TurnPlan } from "./turn-plan.ts";

/** What the engine lends for it. */
export interface TurnWriteContext {
  readonly rows: HistoryRows;
  readonly ids: Pick<NewIds, "nonce" | "seed">;
  readonly node: string;
  shardOf(tenant: string, id: string): number;
  /** How long publications are kept, in milliseconds. */
  readonly publicationRetention: number;
  successorOf(instance: Instance, turn: OpenTurn, reset: NonNullable<TurnPlan["reset"]>): Promise<RunImport>;
}

/** A child that is to be created, with its start fact. */
export type NewChild = {
  readonly write: ChildWrite;
  readonly start: Extract<Incoming, { type: "InstanceStarted" }>;
};

export type PreparedTurn = {
  readonly write: TurnWrite;
  readonly children: readonly NewChild[];
  readonly sends: readonly Send[];
};

/** Synchronous unless a payload codec is at work, or the run is reset. */
export function prepareTurn(instance: Instance, turn: OpenTurn, context: TurnWriteContext): PreparedTurn | Promise<PreparedTurn> {
  const prepared = preparedForNext(instance, turn, context);
  const tasks = taskWrites(instance, turn, context.rows);
  if (tasks === undefined) return prepared;
  if (!(prepared instanceof Promise || tasks instanceof Promise)) return withTasks(prepared, tasks);
  return Promise.all([prepared, tasks]).then((both) => withTasks(...both));
}

const withTasks = (prepared: PreparedTurn, tasks: readonly TaskWrite[]): PreparedTurn => ({
  ...prepared,
  write: { ...prepared.write, tasks },
});

function preparedForNext(instance: Instance, turn: OpenTurn, context: TurnWriteContext): PreparedTurn | Promise<PreparedTurn> {
  const { reset } = turn.plan;
  if (reset === undefined) return preparedAlone(instance, turn, context);
  return Promise.all([preparedAlone(instance, turn, context), context.successorOf(instance, turn, reset)]).then(
    ([prepared, successor]) => ({
      ...prepared,
      write: { ...prepared.write, successor },
    }),
  );
}

function preparedAlone(instance: Instance, turn: OpenTurn, context: TurnWriteContext): PreparedTurn | Promise<PreparedTurn> {
  const { plan } = turn;
  const sends = plan.closing === undefined ? plan.sends : withParent(instance, plan.sends, plan.closing);
  const starts = startsOf(instance, turn, context);
  const givenUp = [...plan.deadLetters, ...runGivenUp(instance, plan.closing)];
  const events = context.rows.encode(turn.facts);
  if (typeof events === "string" && sends.length === 0 && starts.length === 0 && givenUp.length === 0)
    return { write: turnWrite(instance, turn, events, nothing, nothing, nothing, context), children: nothing, sends: nothing };
  const facts = [...sends.map((send) => send.fact), ...starts.map((start) => start.fact)].map((fact) => context.rows.encodeFact(fact));
  const failures = givenUp.map(({ failure }) => context.rows.encodeFailure(failure));
  const finish = (text: string, texts: readonly string[], failureTexts: readonly string[]): PreparedTurn => {
    const children = starts.map((start, index) => childWrite(instance, start, texts[sends.length + index] as string, context));
    const messages = sends.map((send, index) => messageOf(instance, send, texts[index] as string, context));
    const childWrites = children.map((child) => child.write);
    const letters = givenUp.map((letter, index) => ({ ...letter, failure: failureTexts[index] as string }));
    return { write: turnWrite(instance, turn, text, childWrites, messages, letters, context), children, sends };
  };
  if (typeof events === "string" && [...facts, ...failures].every((text) => typeof text === "string"))
    return finish(events, facts as string[], failures as string[]);
  return Promise.all([events, Promise.all(facts), Promise.all(failures)]).then((encoded) => finish(...encoded));
}

const nothing: readonly never[] = [];
/** Messages that a run tells the next one that it knows. */
const knownMessages = 256;
/** Events and keys of whose last publications a run tells the next one. */
const knownPublications = 1_000;

function turnWrite(
  instance: Instance,
  turn: OpenTurn,
  events: string,
  children: readonly ChildWrite[],
  sends: readonly InboxMessage[],
  deadLetters: readonly DeadLetterWrite[],
  context: TurnWriteContext,
): TurnWrite {
  const { identity, state, create } = instance;
  const { plan } = turn;
  return {
    tenant: identity.tenant,
    run: identity.run,
    shard: identity.shard,
    ...(create !== undefined && { create }),
    tail: turn.tail,
    count: turn.facts.length,
    at: turn.at,
    node: context.node,
    nonce: context.ids.nonce(),
    events,
    status: storedStatus(state),
    busy: !state.closed && !state.held && state.busy,
    ...(plan.attributesChanged && { attributes: searchable(state.attributes) }),
    waits: plan.waits.size === 0 ? nothing : [...plan.waits].map(([effect, { name, key }]) => waitWrite(effect, name, key, state)),
    waitsDone: plan.waitsDone,
    timers: plan.timers.size === 0 ? nothing : [...plan.timers].map(([effect, due]) => ({ effect, due })),
    timersDone: [...plan.timersDone],
    children,
    sends,
    consumed: consumedOf(turn),
    deadLetters,
    deadLettersDone: [...plan.deadLettersDone],
    ...(plan.endsTasks && { tasksDone: [...plan.tasksDone] }),
  };
}

function waitWrite(effect: string, name: string, key: string | undefined, state: InstanceState): WaitWrite {
  return key === undefined ? { effect, name, after: 0 } : { effect, name, key, after: state.lastPosition(name, key) };
}

function consumedOf(turn: OpenTurn): readonly string[] {
  if (turn.mail.every((mail) => mail.inbox === undefined)) return nothing;
  return turn.mail.flatMap((mail) => (mail.inbox === undefined ? [] : [mail.inbox]));
}

function messageOf({ identity }: Instance, send: Send, fact: string, context: TurnWriteContext): InboxMessage {
  const { tenant } = identity;
  return { tenant, run: send.run, shard: context.shardOf(tenant, send.id), message: send.message, fact };
}

export function storedStatus({ outcome, parked, paused, compensating, status }: InstanceState): StoredStatus {
  if (outcome !== undefined) return outcome.status;
  if (paused !== undefined) return "paused";
  if (parked !== undefined) return "parked";
  if (compensating !== undefined) return "compensating";
  return status === "Scheduled" ? "queued" : "open";
}

/** The form in which attributes are searched: dates as RFC 3339 text. */
export function searchable(payload: string | undefined): Attributes {
  if (payload === undefined) return {};
  const given = decodePayload(payload) as Record<string, unknown>;
  const entries: [string, string | number | boolean | readonly string[]][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value instanceof Date) entries.push([name, value.toISOString()]);
    else if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") entries.push([name, value]);
    else if (Array.isArray(value)) entries.push([name, value.map(String)]);
  }
  return Object.fromEntries(entries);
}

/** The effect of a dead letter that is a run. */
const wholeRun = "run";

/** The run itself, when it did not come to its end, nothing goes on in its place, and its workflow wants that to be seen to. */
function runGivenUp({ definition, state }: Instance, closing: Closing | undefined): readonly GivenUp[] {
  if (definition?.deadLetter !== true || closing === undefined || state.successor !== undefined || !isGivenUp(closing)) return nothing;
  const attempts = state.start?.retry?.attempt ?? 1;
  return [{ effect: wholeRun, kind: "workflow", name: definition.name, attempts, failure: closing.failure }];
}

type BadEnd = Extract<Closing, { readonly failure: Failure }>;

/** Whether a run ended badly, and not because somebody asked for its end. */
function isGivenUp(closing: Closing): closing is BadEnd {
  if (closing.type === "InstanceCompensated") return closing.failure.code !== "CANCELLED";
  return closing.type === "InstanceFailed" || closing.type === "InstanceTimedOut" || closing.type === "InstanceCompensationFailed";
}

/** The sends of a closing turn: a child tells its parent. */
function withParent(instance: Instance, sends: readonly Send[], closing: Closing): readonly Send[] {
  const { parent } = instance.identity;
  // The end of the run that takes its place is the one that the parent waits for.
  if (parent === undefined || instance.state.successor !== undefined) return sends;
  return [...sends, { run: parent.run, id: parent.id, message: `child:${parent.effect}`, fact: closedFact(instance, parent, closing) }];
}

function closedFact(instance: Instance, parent: ParentLink, closing: HistoryFact): Incoming {
  if (closing.type === "InstanceCompleted")
    return {
      type: "ChildCompleted",
      effect: parent.effect,
      output: closing.output,
    };
  const outcome = instance.state.outcome;
  if (outcome === undefined || !("failure" in outcome)) throw new Error("a closing turn without an outcome");
  return {
    type: "ChildFailed",
    effect: parent.effect,
    status: outcome.status,
    failure: outcome.failure,
    ...(outcome.compensation !== undefined && { compensation: outcome.compensation }),
  };
}

type ChildStart = {
  readonly started: { readonly run: string; readonly effect: string };
  readonly fact: NewChild["start"];
};

/** The runs that a turn begins: children, and the one that goes on where this one ends or takes its place. */
function startsOf(instance: Instance, { plan }: OpenTurn, context: TurnWriteContext): readonly ChildStart[] {
  const { successor } = instance.state;
  if (plan.children.size === 0 && successor === undefined) return nothing;
  const children = [...plan.children.values()].map((child) => childStart(instance, child, context));
  const next = plan.closing === undefined ? undefined : nextStart(instance, plan.closing, context);
  return next === undefined ? children : [...children, next];
}

function childStart(instance: Instance, started: ChildToStart, context: TurnWriteContext): ChildStart {
  const { tenant, run, id, correlationId } = instance.identity;
  return {
    started,
    fact: {
      type: "InstanceStarted",
      id: started.id,
      workflow: started.workflow,
      version: started.version,
      input: started.input,
      seed: context.ids.seed(),
      parent: { tenant, id, run, effect: started.effect },
      correlationId: correlationId ?? id,
      ...(started.priority !== undefined && { priority: started.priority }),
    },
  };
}

/** The next run of the same instance; undefined when there is none. */
function nextStart(instance: Instance, closing: Closing, context: TurnWriteContext): ChildStart | undefined {
  if (closing.type === "InstanceContinuedAsNew") return startOfNext(instance, closing, continuation(instance, closing), context);
  if (!("retryAt" in closing)) return undefined;
  const { run, retryAt, carried } = closing;
  if (run === undefined || retryAt === undefined) return undefined;
  return startOfNext(instance, { run, carried }, nextAttempt(instance, retryAt), context);
}

type StartFact = NewChild["start"];
type Particulars = Pick<StartFact, "version" | "input"> & Partial<StartFact>;

/** It has the parent and the memo of this one, its time limits, and the events that nobody took. */
function startOfNext(
  instance: Instance,
  { run, carried }: { readonly run: string; readonly carried?: StartFact["carried"] | undefined },
  particulars: Particulars,
  context: TurnWriteContext,
): ChildStart {
  const { id, workflow, parent, correlationId } = instance.identity;
  const { state } = instance;
  const { start, messages, at } = state;
  const publications = keptPublications(state, at - context.publicationRetention);
  return {
    started: { run, effect: "continuation" },
    fact: {
      type: "InstanceStarted",
      id,
      workflow,
      ...particulars,
      firstRun: firstOfOpenChain(id, instance.identity.run, state),
      seed: context.ids.seed(),
      ...(parent !== undefined && { parent }),
      correlationId: correlationId ?? id,
      ...(start?.memo !== undefined && { memo: start.memo }),
      ...(start?.priority !== undefined && { priority: start.priority }),
      ...(start?.timeout !== undefined && { timeout: start.timeout, executionStartedAt: start.executionStartedAt ?? beganAt(instance) }),
      ...(carried !== undefined && { carried }),
      ...(publications.length > 0 && { publications }),
      ...(messages.size > 0 && { known: Object.fromEntries([...messages].slice(-knownMessages)) }),
    },
  };
}

/** Why a child was not started; `run` is the one that has its id, where that is known. */
export function childRefused(id: string, run?: string): Failure {
  const holder = run === undefined ? "" : ` (run ${run})`;
  const message = `An open instance has the id "${id}" already${holder}; the child was not started. Give it another id, or leave \`id\` out.`;
  return failureOf(new ApiError(message, { code: "INSTANCE_EXISTS" }));
}

/** The last publications that may still be kept: those before are not found any more. */
function keptPublications({ publications }: InstanceState, since: number): readonly LastPublication[] {
  return [...publications].filter(({ at }) => at >= since).slice(-knownPublications);
}

/** When the run's function was to be entered. */
const beganAt = ({ state: { start, startedAt } }: Instance): number => Math.max(startedAt, start?.startAt ?? 0);

/** A run that continues as new has the attributes as they are, and the retries that were made so far. */
function continuation(
  { identity, state: { attributes, retries } }: Instance,
  { version, input }: Extract<HistoryFact, { type: "InstanceContinuedAsNew" }>,
): Particulars {
  return {
    version,
    input,
    ...(attributes !== undefined && { attributes }),
    ...(retries > 0 && { retries }),
    continuedFrom: identity.run,
  };
}

/** A run that takes the place of one that failed begins as that one did. */
function nextAttempt(instance: Instance, retryAt: number): Particulars {
  const { identity, state } = instance;
  const start = state.start as StartFact;
  const { attempt = 1, since = beganAt(instance) } = start.retry ?? {};
  return {
    version: identity.version,
    input: start.input,
    startAt: retryAt,
    ...(start.attributes !== undefined && { attributes: start.attributes }),
    ...(start.retries !== undefined && { retries: start.retries }),
    retry: { attempt: attempt + 1, of: identity.run, since, delay: Math.max(0, retryAt - state.at) },
  };
}

function childWrite(instance: Instance, { started, fact }: ChildStart, start: string, context: TurnWriteContext): NewChild {
  const { tenant, run, shard } = instance.identity;
  const rejection: Incoming = {
    type: "ChildRejected",
    effect: started.effect,
    failure: childRefused(fact.id),
  };
  const childShard = context.shardOf(tenant, fact.id);
  return {
    start: fact,
    write: {
      run: started.run,
      shard: childShard,
      instance: {
        id: fact.id,
        workflow: fact.workflow,
        version: fact.version,
        ...(fact.parent !== undefined && { parent: fact.parent }),
        ...(fact.correlationId !== undefined && {
          correlationId: fact.correlationId,
        }),
      },
      start: {
        tenant,
        run: started.run,
        shard: childShard,
        message: "start",
        fact: start,
      },
      rejection: {
        tenant,
        run,
        shard,
        message: mailIdentity(rejection),
        fact: JSON.stringify(rejection),
      },
    },
  };
}
