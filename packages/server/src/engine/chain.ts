/**
 * Which runs of an id belong together: those that continue as new, are tried again, or take the place of one that was reset.
 *
 * 1. A run that goes on from another one knows the first of them, so that it is found from any of its chain, also when that is removed.
 * 2. Runs of one id follow each other, and their names sort so: what lies between the first and another run of a chain belongs to it.
 */
import type { HistoryFact, InstanceState } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { InstanceRow } from "./ports/store.ts";

type StartFact = Extract<HistoryFact, { type: "InstanceStarted" }>;
type Copied = { readonly run: string; readonly reset?: boolean | undefined };

/** Turns within which a run has begun, but for one that was paused or parked before. */
const firstTurns = 10;
/** Chains of one id that are looked at. */
const longestSearch = 1_000;

/** The first run of the chain that a run is in. */
export function firstOfChain(id: string, run: string, start: StartFact | undefined, copied: Copied | undefined): string {
  if (copied !== undefined && copied.reset !== true) return run;
  // What another instance has of its past is not that of this one.
  if (copied !== undefined && start?.id !== id) return copied.run;
  return start?.firstRun ?? start?.continuedFrom ?? start?.retry?.of ?? start?.run ?? copied?.run ?? run;
}

/** The same, of a run that is in memory. */
export const firstOfOpenChain = (id: string, run: string, { start, forked }: InstanceState): string =>
  firstOfChain(id, run, start, forked && { run: forked.from.run, reset: forked.reset });

/** The newest run of the chain in which a run was that is not there any more; undefined when there is none. */
export async function restOfChain(engine: Engine, tenant: string, id: string, gone: string): Promise<InstanceRow | undefined> {
  const { store } = engine.options;
  let after: string | undefined;
  for (let chains = 0; chains < longestSearch; chains++) {
    const [row] = await store.listInstances(
      tenant,
      { id, shard: engine.shardOf(tenant, id) },
      { limit: 1, ...(after !== undefined && { after }) },
    );
    if (row === undefined || row.run < gone) return undefined;
    after = firstOfChain(id, row.run, await startOf(engine, row), row.origin?.from);
    if (after <= gone) return row;
  }
  return undefined;
}

async function startOf(engine: Engine, row: InstanceRow): Promise<StartFact | undefined> {
  const isStart = (fact: HistoryFact): fact is StartFact => fact.type === "InstanceStarted";
  const turns = await engine.rows.decodeAll(await engine.options.store.readHistory(row, 1, firstTurns));
  const recorded = turns.flatMap(({ events }) => events).find(isStart);
  if (recorded !== undefined) return recorded;
  const whole = await engine.revival.read(row, { inbox: true });
  return [...(whole?.turns.flatMap(({ events }) => events) ?? []), ...(whole?.inbox.map(({ fact }) => fact) ?? [])].find(isStart);
}
