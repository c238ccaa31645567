/**
 * `Operations` that outlive the engine below them.
 *
 * 1. A call that is under way when the engine crashes is rejected with UNREACHABLE: whether it was done is unknown, as with a broken connection.
 * 2. Waiting for a result goes on with the next engine.
 * 3. What a caller was told is done is noted: it must be found in the store when all is over.
 */
import { ApiError } from "@wovyr/sdk";
import type { Operations } from "@wovyr/sdk/internal";

/** What a caller was told is done. */
export type Acknowledged =
  | { readonly kind: "start"; readonly id: string; readonly run: string }
  | { readonly kind: "event"; readonly id: string; readonly name: string }
  | { readonly kind: "cancel" | "terminate"; readonly id: string };

export type Patience = <T>(call: Promise<T>) => Promise<T>;

export class OperationsRelay {
  readonly operations: Operations;
  readonly acknowledged: Acknowledged[] = [];
  #current: Operations | undefined;
  #lost: (error: Error) => void = () => {};
  #loss: Promise<never> = new Promise(() => {});
  #next: () => void = () => {};
  #nextCame: Promise<void> = new Promise(() => {});
  readonly #patiently: Patience;

  /** Time may jump for calls that are under way, by `patiently`: a call may wait for an outage to end. */
  constructor(patiently: Patience) {
    this.#patiently = patiently;
    this.operations = this.#relay();
    this.disconnect();
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
    if (this.#current !== undefined) this.#lost(unreachable());
    this.#current = undefined;
    this.#nextCame = new Promise((resolve) => {
      this.#next = resolve;
    });
  }

  async #call<T>(call: (operations: Operations) => Promise<T>): Promise<T> {
    if (this.#current === undefined) throw unreachable();
    return this.#patiently(Promise.race([call(this.#current), this.#loss]));
  }

  async #noted<T>(call: (operations: Operations) => Promise<T>, note: (answer: T) => readonly Acknowledged[]): Promise<T> {
    const answer = await this.#call(call);
    this.acknowledged.push(...note(answer));
    return answer;
  }

  /** Asks each engine in turn until one answers. */
  async #patient<T>(call: (operations: Operations) => Promise<T>): Promise<T> {
    for (;;) {
      await this.connected();
      const current = this.#current;
      if (current === undefined) continue;
      const loss = this.#loss;
      const lost = Symbol("lost");
      const answer = await Promise.race([call(current), loss.catch(() => lost)]);
      if (answer !== lost) return answer as T;
    }
  }

  #relay(): Operations {
    const live = (): Operations => {
      if (this.#current === undefined) throw unreachable();
      return this.#current;
    };
    return {
      listWorkflows: () => this.#call((operations) => operations.listWorkflows()),
      getWorkflow: (name) => this.#call((operations) => operations.getWorkflow(name)),
      // The wait for the result is a call of its own, so that a crash in between is no loss.
      start: ({ wait: _wait, ...request }) => this.#noted((operations) => operations.start(request), started),
      startBatch: (requests) =>
        this.#noted(
          (operations) => operations.startBatch(requests),
          (outcomes) => outcomes.flatMap((outcome) => (outcome.ok ? started(outcome.value) : [])),
        ),
      list: (request) => this.#call((operations) => operations.list(request)),
      describe: (id, options) => this.#call((operations) => operations.describe(id, options)),
      result: (id, options) => this.#patient((operations) => operations.result(id, options)),
      history: (id, request) => this.#call((operations) => operations.history(id, request)),
      graph: (id, options) => this.#call((operations) => operations.graph(id, options)),
      stream: (id, options) => live().stream(id, options),
      sendEvent: (id, event, payload, options) =>
        this.#noted(
          (operations) => operations.sendEvent(id, event, payload, options),
          ({ replayed }) => (replayed ? [] : [{ kind: "event", id, name: event }]),
        ),
      query: (id, name, input, options) => this.#call((operations) => operations.query(id, name, input, options)),
      update: (id, name, input, options) => this.#call((operations) => operations.update(id, name, input, options)),
      wake: (id, options) => this.#call((operations) => operations.wake(id, options)),
      cancel: (id, options) =>
        this.#noted(
          (operations) => operations.cancel(id, options),
          () => [{ kind: "cancel", id }],
        ),
      terminate: (id, options) =>
        this.#noted(
          (operations) => operations.terminate(id, options),
          () => [{ kind: "terminate", id }],
        ),
      health: () => this.#call((operations) => operations.health()),
    };
  }
}

const started = ({ id, runId }: { readonly id: string; readonly runId: string }): readonly Acknowledged[] => [
  { kind: "start", id, run: runId },
];

const unreachable = () => new ApiError("the engine is down; whether the call was done is unknown", { code: "UNREACHABLE" });
