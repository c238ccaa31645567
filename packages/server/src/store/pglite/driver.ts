/**
 * PGlite as a driver, in a thread of its own.
 *
 * 1. The event loop never waits for the database.
 * 2. Closing lets the requests under way end first; when the thread dies, every request under way and every later one rejects.
 */
import type { Worker } from "node:worker_threads";
import { startThread } from "../../platform/start-thread.ts";
import { DriverError, type SqlDriver, type SqlLane, type SqlValue } from "../sql/driver.ts";
import type { PgliteAnswer, PgliteRequest, PgliteWorkerData } from "./protocol.ts";

type Rows = readonly (readonly SqlValue[])[];
type Waiting = { resolve(rows: Rows): void; reject(error: DriverError): void };
type Asked = PgliteRequest extends infer Request ? (Request extends PgliteRequest ? Omit<Request, "id"> : never) : never;

export class PgliteDriver implements SqlDriver {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #dead: DriverError | undefined;

  constructor(dataDirectory: string) {
    this.#worker = startThread(import.meta.url, "./pglite-thread", { dataDirectory } satisfies PgliteWorkerData);
    this.#worker.on("message", (answer: PgliteAnswer) => this.#settle(answer));
    this.#worker.on("error", (error) => this.#die(`the database's thread failed: ${error.message}`));
    this.#worker.on("exit", (code) => this.#die(`the database's thread ended with code ${code}`));
  }

  query(_lane: SqlLane, text: string, params: readonly SqlValue[]): Promise<Rows> {
    return this.#ask({ type: "query", text, params });
  }

  async script(text: string): Promise<void> {
    await this.#ask({ type: "script", text });
  }

  async close(): Promise<void> {
    const closed = this.#ask({ type: "close" });
    this.#dead ??= new DriverError("the database is closed", { code: "CLOSED", answered: false });
    try {
      await closed;
    } finally {
      await this.#worker.terminate();
    }
  }

  #ask(asked: Asked): Promise<Rows> {
    return new Promise((resolve, reject) => {
      if (this.#dead !== undefined) {
        reject(this.#dead);
        return;
      }
      this.#last += 1;
      this.#waiting.set(this.#last, { resolve, reject });
      this.#worker.postMessage({ id: this.#last, ...asked } satisfies PgliteRequest);
    });
  }

  #settle(answer: PgliteAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("rows" in answer) waiting?.resolve(answer.rows);
    else waiting?.reject(new DriverError(answer.message, { code: answer.code, answered: answer.answered }));
  }

  #die(reason: string): void {
    this.#dead ??= new DriverError(reason, { code: "THREAD_ENDED", answered: false });
    for (const waiting of this.#waiting.values()) waiting.reject(this.#dead);
    this.#waiting.clear();
  }
}
