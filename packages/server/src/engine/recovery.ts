/** What a node does when it has taken shards: it looks at every run that was at work, gives parked ones another chance, and delivers what is in the inbox. */
import type { Engine } from "./engine.ts";
import type { InstanceKey } from "./ports/store.ts";

const pageRuns = 200;
const pageMessages = 500;

export async function recover(engine: Engine): Promise<void> {
  await recoverRuns(engine, "busy");
  await recoverRuns(engine, "parked");
  await recoverInbox(engine);
}

/** One page at a time: the next is read when the runs of the last are in memory. */
async function recoverRuns(engine: Engine, which: "busy" | "parked"): Promise<void> {
  const { store } = engine.options;
  for (let after: InstanceKey | undefined; ; ) {
    const page = await store.listRunnable(engine.ownership.shards, which, {
      ...(after !== undefined && { after }),
      limit: pageRuns,
    });
    await Promise.all(page.map((row) => (which === "parked" ? engine.giveChance(row) : engine.load(row))));
    const last = page[page.length - 1];
    if (last === undefined || page.length < pageRuns) return;
    after = last;
  }
}

async function recoverInbox(engine: Engine): Promise<void> {
  const { store } = engine.options;
  for (let after = 0; ; ) {
    const page = await store.listInbox(engine.ownership.shards, {
      after,
      limit: pageMessages,
    });
    for (const message of page) await engine.deliverMessage(message);
    const last = page[page.length - 1];
    if (last === undefined || page.length < pageMessages) return;
    after = last.position;
  }
}
