/**
 * A crash in the middle of five orders: `npm run demo`.
 *
 * The orchestrator runs as a child process on an embedded store. It is killed without warning when order-2 is done, order-3 waits for the carrier, order-4
 * is in the middle of a step, order-1 waits for its payment and order-5 for one that never comes; another process then takes over.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, type Handle, type HistoryEvent } from "@wovyr/sdk/client";
import { claims } from "./demo/claims.ts";
import { readLedger } from "./demo/ledger.ts";
import { bold, cyan, dim, green, red } from "./demo/paint.ts";
import { freePort, type Server, startServer } from "./demo/server.ts";
import { type Run, timeline } from "./demo/timeline.ts";
import { order, PaymentReceived } from "./order.ts";

const directory = mkdtempSync(join(tmpdir(), "wovyr-demo-"));
const ledger = join(directory, "side-effects.jsonl");
let server: Server | undefined;

process.once("SIGINT", () => void tidy().then(() => process.exit(130)));
process.once("SIGTERM", () => void tidy().then(() => process.exit(143)));

try {
  process.exitCode = (await demo()) ? 0 : 1;
} finally {
  await tidy();
}

async function demo(): Promise<boolean> {
  const port = await freePort();
  const store = join(directory, "store");
  say(`Starting an orchestrator on ${store} …`);
  const first = await startServer(store, String(port), ledger, "quote-shipping order-4");
  server = first;
  say(`process ${first.pid} serves http://127.0.0.1:${port}`);

  // The client tries again until the server is back: its callers notice nothing of the crash.
  const client = createClient({
    url: `http://127.0.0.1:${port}`,
    retry: { maxAttempts: 1_000, maxDuration: "1m", maxDelay: "200ms" },
  });
  const begin = Date.now();
  const orders = await startOrders(client);
  const results = Promise.allSettled(orders.map((handle) => handle.result()));

  const killedAt = Date.now();
  await first.end("SIGKILL");
  say(red(`process ${first.pid} was killed (SIGKILL)`));

  const restartedAt = Date.now();
  const second = await startServer(store, String(port), ledger);
  server = second;
  say(`process ${second.pid} took over within ${((Date.now() - killedAt) / 1_000).toFixed(1)} s`);
  await client.handle(order, "order-1").send(PaymentReceived, { amount: 2_400 });
  await results;

  const ids = ["order-1", "order-2", "order-3", "order-4", "order-5"].flatMap((id) => [id, `${id}.shipping`]);
  const runs = await Promise.all(ids.filter((id) => id !== "order-5.shipping").map((id) => runOf(client, id)));
  const notes = [
    { at: killedAt, text: red(bold(`━━━ process ${first.pid} is killed ━━━`)) },
    { at: restartedAt, text: cyan(bold(`━━━ process ${second.pid} starts on the same directory ━━━`)) },
  ];
  console.log(`\n${timeline(runs, notes, begin).join("\n")}\n`);

  const isTold = await states(client);
  const claimed = claims({ runs, deeds: readLedger(ledger), killedAt, firstPid: first.pid });
  claimed.push({ text: `process ${second.pid} closed gracefully`, isTrue: (await second.end("SIGTERM")) === 0 });
  console.log("");
  for (const { text, isTrue } of claimed) console.log(isTrue ? `${green("✓")} ${text}` : red(`✗ not so: ${text}`));
  const isAsClaimed = isTold && claimed.every(({ isTrue }) => isTrue);
  console.log(`\norder-1 ${isAsClaimed ? bold(green("Completed")) : red("did not end as claimed")}`);
  return isAsClaimed;
}

/** Starts the orders and brings each to the place where the kill is to find it. */
async function startOrders(client: Client): Promise<Handle<unknown>[]> {
  const start = (number: number, more: { total: number; pickup?: string; patience?: string }) => {
    const id = `order-${number}`;
    return client.start(order, { id, ...more }, { id });
  };
  const paying = await start(1, { total: 2_400, pickup: "200ms" });
  const done = await start(2, { total: 40, pickup: "50ms" });
  await done.send(PaymentReceived, { amount: 40 });
  await done.result();
  const stuck = await start(4, { total: 70, pickup: "100ms" });
  await stuck.send(PaymentReceived, { amount: 70 });
  await reached(stuck, ({ type, data }) => type === "ActivityCompleted" && data.effect !== "0");
  await reached(paying, ({ type }) => type === "EventAwaited");

  const shipping = await start(3, { total: 90, pickup: "2s" });
  await shipping.send(PaymentReceived, { amount: 90 });
  const late = await start(5, { total: 60, patience: "2s" });
  await reached(late, ({ type }) => type === "EventAwaited");
  await reached(shipping, ({ type }) => type === "ChildStarted");
  await reached(client.handle("order-3.shipping"), ({ type }) => type === "TimerStarted");
  return [paying, done, shipping, stuck, late];
}

/** Resolves when the run has recorded such an event. */
async function reached(handle: Handle<unknown>, isIt: (event: HistoryEvent) => boolean): Promise<void> {
  for await (const event of handle.stream()) if (isIt(event)) return;
  throw new Error(`${handle.id} ended before it was where it should be`);
}

async function runOf(client: Client, id: string): Promise<Run> {
  const handle = client.handle(id);
  const { runId } = await handle.describe();
  const events: HistoryEvent[] = [];
  for await (const event of handle.history()) events.push(event);
  return { id, runId, events };
}

/** Prints how each order ended; true when that is as it should be. */
async function states(client: Client): Promise<boolean> {
  const expected = { "order-2": "Completed", "order-3": "Completed", "order-4": "Completed", "order-5": "Failed", "order-1": "Completed" };
  let isRight = true;
  for (const [id, status] of Object.entries(expected)) {
    const run = await client.handle(id).describe();
    isRight &&= run.status === status;
    const outcome = run.failure === undefined ? JSON.stringify(run.output) : `${run.failure.message} (its stock was released)`;
    console.log(`${id}  ${run.status === "Completed" ? green(run.status) : red(run.status.padEnd(9))}  ${dim(outcome)}`);
  }
  return isRight;
}

function say(text: string): void {
  console.log(`${dim("•")} ${text}`);
}

async function tidy(): Promise<void> {
  await server?.end("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
}
