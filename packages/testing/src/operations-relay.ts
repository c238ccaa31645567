/**
 * `Operations` that outlive the engine below them.
 *
 * 1. A call that is under way when the engine crashes is rejected with UNREACHABLE: whether it was done is unknown, as with a broken connection.
 * 2. Waiting for a result goes on with the next engine.
 */
import { ApiError } from "@wovyr/sdk";
import type { Operations } from "@wovyr/sdk/internal";

export class OperationsRelay {
  readonly operations: Operations;
  #current: Operations | undefined;
  #lost: (error: Error) => void = () => {};
  #loss: Promise<never> = new Promise(() => {});
  #next: () => void = () => {};
  #nextCame: Promise<void> = new Promise(() => {});
  #underWay = 0;

  constructor() {
    this.operations = this.#relay();
    this.disconnect();
  }

  /** Calls that have not been answered; those that wait for results and streams do not count. */
  get underWay(): number {
    return this.#underWay;
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
    this.#underWay += 1;
    try {
      return await Promise.race([call(this.#current), this.#loss]);
    } finally {
      this.#underWay -= 1;
    }
  }

  /** Asks each engine in turn until one answers. */
  async #patient<T>(call: (operations: Operations) => Promise<T>): Promise<T> {
    for (;;) {
      if (this.#current === undefined) await this.#nextCame;
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
      start: ({ wait: _wait, ...request }) => this.#call((operations) => operations.start(request)),
      startBatch: (requests) => this.#call((operations) => operations.startBatch(requests)),
      list: (request) => this.#call((operations) => operations.list(request)),
      describe: (id, options) => this.#call((operations) => operations.describe(id, options)),
      result: (id, options) => this.#patient((operations) => operations.result(id, options)),
      history: (id, request) => this.#call((operations) => operations.history(id, request)),
      stream: (id, options) => live().stream(id, options),
      sendEvent: (id, event, payload, options) => this.#call((operations) => operations.sendEvent(id, event, payload, options)),
      cancel: (id, options) => this.#call((operations) => operations.cancel(id, options)),
      terminate: (id, options) => this.#call((operations) => operations.terminate(id, options)),
      health: () => this.#call((operations) => operations.health()),
    };
  }
}

const unreachable = () => new ApiError("the engine is down; whether the call was done is unknown", { code: "UNREACHABLE" });
