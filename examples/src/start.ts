/** Hosts the examples on an embedded store: `npm start`. PORT and WOVYR_DIR choose another port and directory. */
import { consoleLog, createOrchestrator, pgliteStore } from "@wovyr/server";
import { approval } from "./approval.ts";
import { booking, express } from "./booking.ts";
import { hello } from "./hello.ts";
import { migration } from "./migration.ts";
import { order, ship } from "./order.ts";
import { bookkeeping, paidOrder } from "./payment.ts";
import { refund } from "./refund.ts";
import { thumbnails } from "./thumbnails.ts";
import { invoice } from "./weekend.ts";

const directory = process.env.WOVYR_DIR ?? ".wovyr";
const port = Number(process.env.PORT ?? 7420);

const workflows = [hello, order, ship, approval, thumbnails, refund, booking, express, paidOrder, bookkeeping, migration, invoice];

const orchestrator = await createOrchestrator({
  workflows,
  store: pgliteStore(directory),
  log: consoleLog("info"),
});

let closing: Promise<void> | undefined;

async function close(signal: NodeJS.Signals): Promise<void> {
  if (closing !== undefined) process.exit(1); // asked twice: whoever asks is in a hurry, and a crash loses nothing either
  console.log(`\n${signal}: closing; what runs goes on at the next start`);
  closing = orchestrator.close();
  await closing;
  process.exit(0);
}
process.on("SIGINT", close);
process.on("SIGTERM", close);

const url = await orchestrator.listen({ port });
const json = "-H 'content-type: application/json'";

console.log(`
Wovyr serves ${workflows.map(({ name }) => name).join(", ")} at ${url}, from ${directory}. Ctrl-C ends it.

# start an order: the id is yours to choose
curl -sX POST ${url}/v1/workflows/order/instances ${json} -d '{"id":"order-42","input":{"id":"order-42","total":50,"pickup":"1s"}}'

# what it did and what it waits for (kill this process and start it again: the answer stays the same)
curl -s ${url}/v1/instances/order-42

# send the event it waits for
curl -sX POST ${url}/v1/instances/order-42/events/payment.received ${json} -d '{"payload":{"amount":54.9}}'

# wait for the result
curl -s '${url}/v1/instances/order-42/result?wait=30s'

# what happened, event by event
curl -s ${url}/v1/instances/order-42/history

# the same as server-sent events: follows a run until it closes
curl -sN ${url}/v1/instances/order-42/stream

# start and wait in one call
curl -sX POST '${url}/v1/workflows/hello/instances?wait=10s' ${json} -d '{"input":"Ada"}'

# publish an event, as a CloudEvent: it starts the workflow that it triggers, and reaches every run that waits for it with this key ("subject")
curl -sX POST ${url}/v1/events ${json} -d '{"specversion":"1.0","id":"transfer-1","source":"/bank","type":"bank.transfer","subject":"7","data":{"order":"7","amount":50}}'
`);
