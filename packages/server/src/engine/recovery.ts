/**
 * What a node does when it has taken shards of a database: it looks at every run of theirs that was at work, gives parked ones another chance, and delivers what is in the
 * inbox.
 *
 * 1. A parked run is loaded together with the messages that it could not take: an outcome among them tells that an attempt was not lost. So it is for a
 *    run that was about to go on with them when its process ended.
 * 2. Paused runs are left alone.
 */
import type { Engine } from "./engine.ts";
import { isOutcomeMessage } from "./mail.ts";
import { shardsAt } from "./places.ts";
import type { InboxMessage, InstanceRow, RunAddress } from "./ports/store.ts";

const pageRuns = 200;
const pageMessages = 500;

export async function recover(engine: Engine, place: number, gained: readonly number[]): Promise<void> {
  // Those that are lost on the way are another node's to recover.
  const shards = () => gained.filter((shard) => engine.ownership.owns(shard));
  await eachPage(engine, shards, "parked", async (page) => {
    for (const row of page) engine.giveChance(row);
  });
  const outcomes: Pick<InboxMessage, "run" | "message">[] = [];
  await eachMessage(engine, shards, async ({ run, message }) => {
    if (isOutcomeMessage(message)) outcomes.push({ run, message });
  });
  engine.revival.expect(place, outcomes);
  await eachPage(engine, shards, "busy", (page) => loadAll(engine, page));
  await eachMessage(engine, shards, (message) => engine.deliverMessage(message));
  await eachPage(engine, shards, "parked", (page) => loadAll(engine, page));
  engine.revival.expect(place, []);
}

async function loadAll(engine: Engine, page: readonly RunAddress[]): Promise<void> {
  await Promise.all(page.map((row) => engine.revival.load(row)));
}

/** One page at a time: the next is read when the work on the last is done. */
async function eachPage(
  engine: Engine,
  shards: () => readonly number[],
  which: "busy" | "parked",
  work: (page: readonly RunAddress[]) => Promise<void>,
): Promise<void> {
  const { store } = engine.options;
  for (let after: InstanceRow | undefined; ; ) {
    const page = await store.listRunnable(shards(), which, {
      ...(after !== undefined && { after }),
      limit: pageRuns,
    });
    await work(page);
    const last = page[page.length - 1];
    if (last === undefined || page.length < pageRuns) return;
    after = last;
  }
}

/** Delivers every message of the durable inbox of one database; those that were delivered before come to nothing. */
export async function deliverInbox(engine: Engine, place: number): Promise<void> {
  await eachMessage(
    engine,
    () => shardsAt(engine.options.store, place, engine.ownership.shards),
    (message) => engine.deliverMessage(message),
  );
}

export async function eachMessage(
  engine: Engine,
  shards: () => readonly number[],
  work: (message: InboxMessage & { readonly position: number }) => Promise<void>,
  from = 0,
): Promise<void> {
  const { store } = engine.options;
  for (let after = from; ; ) {
    const page = await store.listInbox(shards(), {
      after,
      limit: pageMessages,
    });
    for (const message of page) await work(message);
    const last = page[page.length - 1];
    if (last === undefined || page.length < pageMessages) return;
    after = last.position;
  }
}
