/** When the next thing falls due in an engine; undefined when nothing ever will. */
import type { Engine, Store } from "@wovyr/server/internal";
import { bareStore } from "../faults/store-calls.ts";
import type { Session } from "./session.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** Timers that may be overdue in runs that cannot take them. */
const overdueRows = 1_000;

/** `leased`: the engine renews its lease, which takes time as well. */
export async function nextDue(session: Session, clock: VirtualClock, leased: boolean): Promise<number | undefined> {
  const { engine, store } = session;
  const asIs = engine === undefined || store === undefined || !engine.resting || !engine.ready;
  if (asIs || session.sleeping || leased) return clock.next;
  const timer = await nextTimer(engine, bareStore(store), clock);
  return earliest(timer, engine.dispatch.nextDue, engine.taskSweep.nextDue);
}

function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

async function nextTimer({ ownership, timers }: Engine, store: Store, clock: VirtualClock): Promise<number | undefined> {
  const now = clock.now();
  const rows = (limit: number) => store.listTimers(ownership.shards, Number.MAX_SAFE_INTEGER, limit);
  const [first] = await rows(1);
  if (first === undefined || first.due > now) return first?.due;
  // What is overdue is still to be read by the engine, or has fired into a run that cannot take it: that one is passed over.
  const page = await rows(overdueRows);
  if (page.some(({ run, effect, due }) => due <= now && !timers.hasFired(run, effect))) return clock.next;
  return page.find((row) => row.due > now)?.due;
}
