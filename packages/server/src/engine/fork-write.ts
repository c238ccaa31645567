/**
 * What is written of a run that goes on from another one's history.
 *
 * 1. The turns are copied as they are stored; only the start says whose they were. What makes the copy a run of its own is its first message.
 * 2. A run that takes another one's place gets, after that message, the events that the other one received later and the updates that it had not done, in
 *    order, and knows what else was said to it.
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
} from "@wovyr/sdk/internal";
import type { HistoryRows } from "./history-row.ts";
import type { LoadedRun } from "./loader.ts";
import { mailIdentity } from "./mail.ts";
import type { NewIds } from "./new-ids.ts";
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
  readonly ids: Pick<NewIds, "run" | "seed">;
  /** Milliseconds since the epoch. */
  now(): number;
  shardOf(tenant: string, id: string): number;
}

export async function forkWrite(plan: ForkPlan, context: ForkContext): Promise<RunImport> {
  const { source, at, id, run, version, startKey, reset } = plan;
  const { row } = source;
  const correlationId = row.correlationId ?? row.id;
  const state = foldHistory(source.turns.filter(({ seq }) => seq <= at));
  const fact = forkFact(plan, state, correlationId, context);
  const inbox: Incoming[] = [fact, ...(reset === undefined ? [] : handedOn(plan, state))];
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

function forkFact(plan: ForkPlan, state: InstanceState, correlationId: string, context: ForkContext): ForkFact {
  const { source, at, id, run, reset } = plan;
  const { row } = source;
  const children = [...state.children.keys()].map((effect) => {
    const child = context.ids.run();
    return { effect, id: child, run: child };
  });
  const known = reset === undefined ? [] : alreadyDone(plan);
  return {
    type: "Forked",
    from: { id: row.id, run: row.run },
    at,
    id,
    run,
    seed: context.ids.seed(),
    correlationId,
    ...(children.length > 0 && { children }),
    ...(known.length > 0 && { known: Object.fromEntries(known.map((message) => [message.message, messageDigest(message)])) }),
    ...(reset !== undefined && { reset: true }),
    ...(reset?.reason !== undefined && { reason: reset.reason }),
  };
}

/** What the other run received after the border and is still to be done, also what is still kept for it. */
function handedOn(plan: ForkPlan, state: InstanceState): Incoming[] {
  const messages = new Map<string, Incoming>();
  const isOpen = openMessages(plan);
  for (const fact of laterMessages(plan))
    if (isOpen(fact) && !state.messages.has(fact.message) && !messages.has(fact.message)) messages.set(fact.message, fact);
  return [...messages.values()];
}

/** What else was said to it: the new run knows it, and does not do it. */
function alreadyDone(plan: ForkPlan): Message[] {
  const isOpen = openMessages(plan);
  return laterMessages(plan).filter((fact) => !isOpen(fact));
}

/** Whether a message is still to be done: an event, or an update that has not ended. */
function openMessages(plan: ForkPlan): (fact: Message) => boolean {
  const ended = new Set<string>();
  for (const fact of laterFacts(plan)) if (fact.type === "UpdateCompleted" || fact.type === "UpdateFailed") ended.add(fact.message);
  return (fact) => fact.type === "EventReceived" || (fact.type === "UpdateRequested" && !ended.has(fact.message));
}

const laterMessages = (plan: ForkPlan): Message[] => [...laterFacts(plan), ...plan.source.inbox.map(({ fact }) => fact)].filter(isMessage);

const laterFacts = ({ source, at, reset }: ForkPlan): readonly HistoryFact[] => [
  ...source.turns.filter(({ seq }) => seq > at).flatMap((turn) => turn.events),
  ...(reset?.since ?? []),
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
