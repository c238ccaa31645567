/**
 * What is written of a run that goes on from another one's history.
 *
 * 1. The turns are copied as they are stored; only the start says whose they were. What makes the copy a run of its own is its first message.
 * 2. A run that takes another one's place gets, after that message, the events that the other one received later, in order, and knows what else was said
 *    to it.
 */
import {
  type ForkFact,
  foldHistory,
  type HistoryFact,
  type Incoming,
  type InstanceState,
  isMessage,
  type Message,
  messageDigest,
  type Turn,
} from "@wovyr/sdk/internal";
import type { HistoryRows } from "./history-row.ts";
import type { LoadedRun } from "./loader.ts";
import { mailIdentity } from "./mail.ts";
import type { HistoryRow, NewInstance, RunImport } from "./ports/store.ts";
import { searchable } from "./turn-write.ts";

export type ForkPlan = {
  readonly source: Omit<LoadedRun, "weight">;
  /** Number of the last event to keep: a border. */
  readonly at: number;
  readonly id: string;
  readonly run: string;
  readonly version: string;
  readonly startKey: NewInstance["startKey"];
  /** Given when the run takes the place of the other one; `since` is what that recorded beside its stored turns. */
  readonly reset?: { readonly reason: string | undefined; readonly since: readonly HistoryFact[] };
};

/** What the engine lends for it. */
export interface ForkContext {
  readonly rows: HistoryRows;
  /** Milliseconds since the epoch. */
  now(): number;
  shardOf(tenant: string, id: string): number;
  newRunId(): string;
  newSeed(): string;
}

export async function forkWrite(plan: ForkPlan, context: ForkContext): Promise<RunImport> {
  const { source, at, id, run, version, startKey, reset } = plan;
  const { row } = source;
  const correlationId = row.correlationId ?? row.id;
  const state = foldHistory(source.turns.filter(({ seq }) => seq <= at));
  const fact = forkFact(plan, state, correlationId, context);
  const inbox: Incoming[] = [fact, ...(reset === undefined ? [] : laterEvents(plan, state))];
  return {
    row: {
      tenant: row.tenant,
      run,
      id,
      shard: context.shardOf(row.tenant, id),
      workflow: row.workflow,
      version,
      status: "open",
      busy: false,
      tail: at,
      createdAt: context.now(),
      ...(reset !== undefined && row.parent !== undefined && { parent: row.parent }),
      correlationId,
      origin: { from: { ...fact.from, at, ...(reset !== undefined && { reset: true }) } },
    },
    attributes: searchable(state.attributes),
    turns: copied(source.rows, at, row.run),
    inbox: await Promise.all(inbox.map(async (each) => ({ message: mailIdentity(each), fact: await context.rows.encodeFact(each) }))),
    ...(startKey !== undefined && { startKey }),
  };
}

function forkFact(
  { source: { row, turns }, at, id, run, reset }: ForkPlan,
  state: InstanceState,
  correlationId: string,
  context: ForkContext,
): ForkFact {
  const children = [...state.children.keys()].map((effect) => {
    const child = context.newRunId();
    return { effect, id: child, run: child };
  });
  const known = reset === undefined ? [] : laterFacts(turns, at, reset.since).filter(isOther);
  return {
    type: "Forked",
    from: { id: row.id, run: row.run },
    at,
    id,
    run,
    seed: context.newSeed(),
    correlationId,
    ...(children.length > 0 && { children }),
    ...(known.length > 0 && { known: Object.fromEntries(known.map((message) => [message.message, messageDigest(message)])) }),
    ...(reset !== undefined && { reset: true }),
    ...(reset?.reason !== undefined && { reason: reset.reason }),
  };
}

/** What was said to the other run but its events: they follow, and are known then. */
const isOther = (fact: HistoryFact): fact is Message => isMessage(fact) && fact.type !== "EventReceived";

/** The events that the other run received after the border, also those that are still kept for it. */
function laterEvents({ source, at, reset }: ForkPlan, state: InstanceState): Incoming[] {
  const events = new Map<string, Incoming>();
  for (const fact of [...laterFacts(source.turns, at, reset?.since ?? []), ...source.inbox.map((mail) => mail.fact)])
    if (fact.type === "EventReceived" && !state.messages.has(fact.message) && !events.has(fact.message)) events.set(fact.message, fact);
  return [...events.values()];
}

const laterFacts = (turns: readonly Turn[], at: number, since: readonly HistoryFact[]): readonly HistoryFact[] => [
  ...turns.filter(({ seq }) => seq > at).flatMap((turn) => turn.events),
  ...since,
];

/** The turns up to an event, as they are stored; the start names the run that recorded it. */
function copied(rows: readonly HistoryRow[], at: number, run: string): HistoryRow[] {
  let named = false;
  return rows
    .filter(({ seq }) => seq <= at)
    .map((row) => {
      if (named || !row.events.includes('"InstanceStarted"')) return row;
      const facts = JSON.parse(row.events) as { readonly type: string; readonly run?: string }[];
      named = facts.some(({ type }) => type === "InstanceStarted");
      return { ...row, events: JSON.stringify(facts.map((fact) => (fact.type === "InstanceStarted" ? { run, ...fact } : fact))) };
    });
}
