/** An orchestrator in a process of its own, started by host.ts; it tells its parent its URL, and ends with it. */
import { once } from "node:events";
import { consoleLog, createOrchestrator, pgliteStore, postgresStore } from "../../src/index.ts";
import { letAttemptsEnd } from "../model/activities.ts";
import { interpreted } from "../model/program.ts";
import { single } from "../queues/work.ts";
import type { HostOptions } from "./host.ts";
import { workflows } from "./workflows.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as HostOptions;
const { store, port, lease, turnTimeout, shutdownGrace, statementDeadline, activities, programs, prepared } = options;

process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.on("unhandledRejection", (error) => {
  console.error("unhandledRejection", error);
  process.exit(99);
});
process.on("warning", (warning) => console.error(`process warning: ${warning.name} ${warning.message}`));

if (programs === true) letAttemptsEnd();

// Its modules are loaded: it waits for its turn.
if (prepared === true) await once(process, "message");

const orchestrator = await createOrchestrator({
  workflows: programs === true ? [...workflows, interpreted, single] : workflows,
  store:
    store.kind === "pglite"
      ? pgliteStore(store.directory)
      : postgresStore([store.url, ...(store.others ?? [])], statementDeadline === undefined ? {} : { statementDeadline }),
  log: consoleLog("info"),
  lease,
  turnTimeout: turnTimeout ?? false,
  shutdownGrace,
  limits: { activities },
});
process.on("message", () => process.send?.({ ready: orchestrator.ready, memory: process.memoryUsage() }));
process.once("SIGTERM", () => {
  void orchestrator.close().then(() => {
    process.channel?.unref();
    process.removeAllListeners("message");
    process.removeAllListeners("disconnect");
  });
});
process.send?.({ url: await orchestrator.listen({ port: port ?? 0 }) });
