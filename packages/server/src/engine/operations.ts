/** The engine's answer to `Operations`, bound to one tenant; each kind of call has a file of its own. */
import {
  jsonSchemaOf,
  type Operations,
  type StartResponse,
  type WorkflowDefinition,
  type WorkflowDetails,
  type WorkflowInfo,
} from "@wovyr/sdk/internal";
import { staticGraph } from "../graph/static-graph.ts";
import { Batches } from "./batches.ts";
import { clusterOf } from "./cluster-description.ts";
import { DeadLetters } from "./dead-letters.ts";
import type { Engine } from "./engine.ts";
import { Forking } from "./forking.ts";
import { Messages } from "./messages.ts";
import { Publishing } from "./publishing.ts";
import { queue } from "./queued-messages.ts";
import { Reading } from "./reading.ts";
import { Removal } from "./removal.ts";
import { Results } from "./results.ts";
import { Starting } from "./starting.ts";
import { taskOperations } from "./task-operations.ts";
import { Tenancy } from "./tenancy.ts";
import { Transfer } from "./transfer.ts";

export { maxBatch } from "./starting.ts";

/** What is said to a run. */
export type Sayable = Pick<Operations, "sendEvent" | "wake" | "cancel" | "terminate" | "pause" | "resume" | "decideCompensation">;

/** What this node does by itself, for runs that it owns. */
export type LocalOperations = Operations & {
  /** What is made durable for runs that nobody can be asked about now. */
  readonly withoutOwner: Sayable & Pick<Operations, "start">;
};

/**
 * `engine` throws when there is none yet. `startsInFlight` is shared by all tenants' operations. `anywhere` are the operations by which an operation reaches
 * other runs than the one that it is about.
 */
export function localOperations(
  tenant: string,
  engine: () => Engine,
  startsInFlight: Map<string, Promise<StartResponse>>,
  anywhere: () => Operations,
): LocalOperations {
  const tenancy = new Tenancy(tenant, engine);
  const reading = new Reading(tenancy);
  const results = new Results(tenancy);
  const messages = new Messages(tenancy);
  const forking = new Forking(tenancy);
  const transfer = new Transfer(tenancy);
  const removal = new Removal(tenancy);
  const batches = new Batches(tenancy, messages);
  const starting = new Starting(tenancy, anywhere, startsInFlight);
  const publishing = new Publishing(tenancy, anywhere);
  const deadLetters = new DeadLetters(tenancy, messages, anywhere);
  const queued = new Messages(tenancy, queue);
  return {
    listWorkflows: async () => {
      const { registry } = engine().options;
      return registry.names.map((name) => infoOf(registry.versions(name)));
    },
    getWorkflow: async (name) => detailsOf(engine().options.registry.versions(name)),

    start: (request) => starting.start(request),
    startBatch: (requests) => starting.startBatch(requests),

    list: (request) => reading.list(request),
    runs: (id, request) => reading.runs(id, request),
    describe: (id, options) => reading.describe(id, options),
    graph: (id, options) => reading.graph(id, options),
    history: (id, request) => reading.history(id, request),
    stream: (id, options) => reading.stream(id, options),
    result: (id, options) => results.result(id, options),

    sendEvent: (id, event, payload, options) => messages.sendEvent(id, event, payload, options),
    publish: (event, payload, options) => publishing.publish(event, payload, options),
    query: (id, query, input, options) => messages.query(id, query, input, options),
    update: (id, update, input, options) => messages.update(id, update, input, options),
    wake: (id, options) => messages.wake(id, options),
    cancel: (id, options) => messages.cancel(id, options),
    decideCompensation: (id, effect, decision, options) => messages.decideCompensation(id, effect, decision, options),
    listDeadLetters: (request) => deadLetters.list(request),
    getDeadLetter: (id) => deadLetters.get(id),
    decideDeadLetters: (operation, options) => batches.decide(operation, options),
    decideDeadLetter: (id, decision, options) => deadLetters.decide(id, decision, options),
    terminate: (id, options) => messages.terminate(id, options),
    pause: (id, options) => messages.pause(id, options),
    resume: (id, options) => messages.resume(id, options),

    fork: (id, request) => forking.fork(id, request),
    reset: (id, request) => forking.reset(id, request),
    export: (id, options) => transfer.export(id, options),
    import: (lines) => transfer.import(lines),
    delete: (id, options) => removal.delete(id, options),

    startBatchOperation: (request) => batches.start(request),
    getBatchOperation: (id) => batches.get(id),
    cancelBatchOperation: (id, options) => batches.cancel(id, options),

    cluster: async () => clusterOf(engine()),
    ...taskOperations(engine),

    health: async () => healthOf(engine()),

    withoutOwner: {
      start: (request) => starting.startWithoutOwner(request),
      sendEvent: (id, event, payload, options) => queued.sendEvent(id, event, payload, options),
      wake: (id, options) => queued.wake(id, options),
      cancel: (id, options) => queued.cancel(id, options),
      terminate: (id, options) => queued.terminate(id, options),
      pause: (id, options) => queued.pause(id, options),
      resume: (id, options) => queued.resume(id, options),
      decideCompensation: (id, effect, decision, options) => queued.decideCompensation(id, effect, decision, options),
    },
  };
}

function healthOf({ unavailable, ready }: Engine): { readonly ready: boolean; readonly reason?: string } {
  if (unavailable !== undefined) return { ready: false, reason: unavailable.message };
  return ready ? { ready } : { ready, reason: "The orchestrator is recovering the runs of its shards." };
}

function detailsOf(versions: readonly WorkflowDefinition[]): WorkflowDetails {
  const graph = Object.fromEntries(versions.map((definition) => [definition.version, staticGraph(definition)]));
  return { ...infoOf(versions), graph };
}

function infoOf(versions: readonly WorkflowDefinition[]): WorkflowInfo {
  const latest = versions[versions.length - 1] as WorkflowDefinition;
  return {
    name: latest.name,
    versions: versions.map((definition) => definition.version),
    input: latest.input === undefined ? null : jsonSchemaOf(latest.input),
    output: latest.output === undefined ? null : jsonSchemaOf(latest.output),
    triggers: latest.triggers?.map((trigger) => trigger.name) ?? [],
  };
}
