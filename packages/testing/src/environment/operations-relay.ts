/**
 * `Operations` that outlive the engine below them.
 *
 * 1. A call that is under way when the engine crashes is rejected with UNREACHABLE: whether it was done is unknown, as with a broken connection.
 * 2. Waiting for a result goes on with the next engine, and over an outage of the store.
 * 3. What a caller was told is done is noted: it must be found in the store when all is over.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import type { Operations } from "@wovyr/sdk/internal";

/** What a caller was told is done. */
export type Acknowledged =
  | { readonly kind: "start"; readonly id: string; readonly run: string }
  | { readonly kind: "event"; readonly id: string; readonly name: string; readonly idempotencyKey: string | undefined }
  | { readonly kind: "publication"; readonly id: string; readonly name: string; readonly started: readonly string[] }
  | { readonly kind: "cancel" | "terminate"; readonly id: string };

export type Surroundings = {
  /** Awaits a call that is under way, while time may jump: it may wait for an outage to end. */
  readonly patiently: <T>(call: Promise<T>, what: string) => Promise<T>;
  /** Resolves after so many milliseconds of virtual time. */
  readonly pause: (milliseconds: number) => Promise<void>;
  /** Why nothing can be called any more. */
  readonly over: () => Error | undefined;
};

/** What says that the same call may be answered later, or by the next engine. */
const passing: ReadonlySet<string> = new Set(["UNREACHABLE", "NOT_OWNER", "STORE_UNAVAILABLE", "SHUTTING_DOWN", "OVERLOADED"]);
/** Milliseconds between two tries where nothing else is said. */
const usualPause = 1_000;

/** How long to wait before a call is made again; undefined for an error that stays. */
export function pauseAfter(error: unknown): number | undefined {
  if (!(error instanceof WovyrError)) return undefined;
  const told = error instanceof ApiError ? error.retryAfter : undefined;
  return told ?? (passing.has(error.code) ? usualPause : undefined);
}

export class OperationsRelay {
  readonly operations: Operations;
  readonly acknowledged: Acknowledged[] = [];
  #current: Operations | undefined;
  #lost: (error: Error) => void = () => {};
  #loss: Promise<never> = new Promise(() => {});
  #next: () => void = () => {};
  #nextCame: Promise<void>;
  readonly #surroundings: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.operations = this.#relay();
    this.#nextCame = new Promise((resolve) => {
      this.#next = resolve;
    });
  }

  /** The engine that calls go to; undefined when there is none. */
  get current(): object | undefined {
    return this.#current;
  }

  /** Resolves when there is an engine. */
  async connected(): Promise<void> {
    while (this.#current === undefined) await this.#nextCame;
  }

  connect(operations: Operations): void {
    this.#current = operations;
    this.#loss = new Promise((_resolve, reject) => {
      this.#lost = reject;
    });
    this.#loss.catch(() => {});
    this.#next();
  }

  disconnect(): void {
    if (this.#current === undefined) return;
    this.#lost(unreachable());
    this.#current = undefined;
    this.#nextCame = new Promise((resolve) => {
      this.#next = resolve;
    });
  }

  async #call<T>(what: string, call: (operations: Operations) => Promise<T>): Promise<T> {
    const over = this.#surroundings.over();
    if (over !== undefined) throw over;
    if (this.#current === undefined) throw unreachable();
    return this.#surroundings.patiently(Promise.race([call(this.#current), this.#loss]), `the answer to ${what}`);
  }

  async #noted<T>(what: string, call: (operations: Operations) => Promise<T>, note: (answer: T) => readonly Acknowledged[]): Promise<T> {
    const answer = await this.#call(what, call);
    this.acknowledged.push(...note(answer));
    return answer;
  }

  /** Asks each engine in turn until one answers. */
  async #patient<T>(call: (operations: Operations) => Promise<T>): Promise<T> {
    for (;;) {
      await this.connected();
      const over = this.#surroundings.over();
      if (over !== undefined) throw over;
      const current = this.#current;
      if (current === undefined) continue;
      const loss = this.#loss;
      const lost = Symbol("lost");
      try {
        const answer = await Promise.race([call(current), loss.catch(() => lost)]);
        if (answer !== lost) return answer as T;
      } catch (error) {
        const wait = pauseAfter(error);
        if (wait === undefined) throw error;
        if (this.#current === current) await Promise.race([this.#surroundings.pause(wait), loss.catch(() => {})]);
      }
    }
  }

  #relay(): Operations {
    const live = (): Operations => {
      if (this.#current === undefined) throw unreachable();
      return this.#current;
    };
    return {
      listWorkflows: () => this.#call("listWorkflows()", (operations) => operations.listWorkflows()),
      getWorkflow: (name) => this.#call(`getWorkflow(${name})`, (operations) => operations.getWorkflow(name)),
      // The wait for the result is a call of its own, so that a crash in between is no loss.
      start: ({ wait: _wait, ...request }) => this.#noted(`start(${request.workflow})`, (operations) => operations.start(request), started),
      startBatch: (requests) =>
        this.#noted(
          "startBatch()",
          (operations) => operations.startBatch(requests),
          (outcomes) => outcomes.flatMap((outcome) => (outcome.ok ? started(outcome.value) : [])),
        ),
      list: (request) => this.#call("list()", (operations) => operations.list(request)),
      runs: (id, request) => this.#call(`runs() of ${id}`, (operations) => operations.runs(id, request)),
      describe: (id, options) => this.#call(`describe() of ${id}`, (operations) => operations.describe(id, options)),
      result: (id, options) => this.#patient((operations) => operations.result(id, longer(options))),
      history: (id, request) => this.#call(`history() of ${id}`, (operations) => operations.history(id, request)),
      graph: (id, options) => this.#call(`graph() of ${id}`, (operations) => operations.graph(id, options)),
      stream: (id, options) => live().stream(id, options),
      sendEvent: (id, event, payload, options) =>
        this.#noted(
          `send(${event}) to ${id}`,
          (operations) => operations.sendEvent(id, event, payload, options),
          ({ replayed }) => (replayed ? [] : [{ kind: "event", id, name: event, idempotencyKey: options?.idempotencyKey }]),
        ),
      publish: (event, payload, options) =>
        this.#noted(
          `publish(${event})`,
          (operations) => operations.publish(event, payload, options),
          ({ id, started, replayed }) =>
            replayed ? [] : [{ kind: "publication", id, name: event, started: started.map(({ runId }) => runId) }],
        ),
      query: (id, name, input, options) =>
        this.#call(`query(${name}) to ${id}`, (operations) => operations.query(id, name, input, options)),
      update: (id, name, input, options) =>
        this.#call(`update(${name}) to ${id}`, (operations) => operations.update(id, name, input, options)),
      wake: (id, options) => this.#call(`wake() of ${id}`, (operations) => operations.wake(id, options)),
      cancel: (id, options) =>
        this.#noted(
          `cancel() of ${id}`,
          (operations) => operations.cancel(id, options),
          () => [{ kind: "cancel", id }],
        ),
      decideCompensation: (id, effect, decision, options) =>
        this.#call(`${decision} compensation ${effect} of ${id}`, (operations) =>
          operations.decideCompensation(id, effect, decision, options),
        ),
      listDeadLetters: (request) => this.#call("listDeadLetters()", (operations) => operations.listDeadLetters(request)),
      getDeadLetter: (id) => this.#call(`getDeadLetter(${id})`, (operations) => operations.getDeadLetter(id)),
      decideDeadLetters: (operation, options) =>
        this.#call(`${operation.decision} dead letters`, (operations) => operations.decideDeadLetters(operation, options)),
      decideDeadLetter: (id, decision, options) =>
        this.#call(`${decision} dead letter ${id}`, (operations) => operations.decideDeadLetter(id, decision, options)),
      terminate: (id, options) =>
        this.#noted(
          `terminate() of ${id}`,
          (operations) => operations.terminate(id, options),
          () => [{ kind: "terminate", id }],
        ),
      pause: (id, options) => this.#call(`pause() of ${id}`, (operations) => operations.pause(id, options)),
      resume: (id, options) => this.#call(`resume() of ${id}`, (operations) => operations.resume(id, options)),
      fork: (id, request) => this.#noted(`fork() of ${id}`, (operations) => operations.fork(id, request), started),
      reset: (id, request) => this.#noted(`reset() of ${id}`, (operations) => operations.reset(id, request), started),
      export: (id, options) => live().export(id, options),
      import: (lines) =>
        this.#noted(
          "import()",
          (operations) => operations.import(lines),
          (runs) => runs.flatMap(started),
        ),
      delete: (id, options) => this.#call(`delete() of ${id}`, (operations) => operations.delete(id, options)),
      startBatchOperation: (request) => this.#call("batches.start()", (operations) => operations.startBatchOperation(request)),
      getBatchOperation: (id) => this.#call(`batches.get(${id})`, (operations) => operations.getBatchOperation(id)),
      cancelBatchOperation: (id, options) =>
        this.#call(`batches.cancel(${id})`, (operations) => operations.cancelBatchOperation(id, options)),
      cluster: () => this.#call("cluster()", (operations) => operations.cluster()),
      pollTasks: (poll) => this.#call("pollTasks()", (operations) => operations.pollTasks(poll)),
      heartbeatTask: (token, options) => this.#call("heartbeatTask()", (operations) => operations.heartbeatTask(token, options)),
      completeTask: (token, output) => this.#call("completeTask()", (operations) => operations.completeTask(token, output)),
      failTask: (token, failure) => this.#call("failTask()", (operations) => operations.failTask(token, failure)),
      releaseTask: (token) => this.#call("releaseTask()", (operations) => operations.releaseTask(token)),
      heartbeatWorker: (id, report) => this.#call("heartbeatWorker()", (operations) => operations.heartbeatWorker(id, report)),
      listWorkers: (request) => this.#call("listWorkers()", (operations) => operations.listWorkers(request)),
      listQueues: () => this.#call("listQueues()", (operations) => operations.listQueues()),
      health: () => this.#call("health()", (operations) => operations.health()),
    };
  }
}

/** Milliseconds after which a client asks again: over a network no answer takes longer. */
const askedAgain = 30_000;
const century = 100 * 365 * 86_400_000;

/** Asked once: virtual time passes so quickly that thousands who ask again every 30 seconds would do nothing else. */
const longer = (options: Parameters<Operations["result"]>[1]) => (options?.wait === askedAgain ? { ...options, wait: century } : options);

const started = ({ id, runId }: { readonly id: string; readonly runId: string }): readonly Acknowledged[] => [
  { kind: "start", id, run: runId },
];

const unreachable = () => new ApiError("the engine is down; whether the call was done is unknown", { code: "UNREACHABLE" });
