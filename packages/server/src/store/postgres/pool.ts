/**
 * A few connections, each for one statement at a time, and a queue before them.
 *
 * 1. Connections are made when statements wait, and made again for ever; after failures with a growing pause, at most `longestPause`.
 * 2. While no connection can be made and none is left, everything that waits is rejected with the reason.
 * 3. Waiting and running together take at most the deadline, where there is one; a connection whose statement missed it is given up.
 */
import { DriverError } from "../sql/driver.ts";
import type { Connection } from "./connection.ts";

export type PoolOptions = {
  readonly size: number;
  /** Milliseconds. */
  readonly deadline?: number;
  open(signal: AbortSignal): Promise<Connection>;
  /** Told when connections cannot be made any more, and when they can again. */
  reachable?(failure: DriverError | undefined): void;
};

type Job = {
  /** Gives back what tells the outcome to whoever waits for it. */
  run(connection: Connection): Promise<() => void>;
  fail(error: DriverError): void;
};

/** Milliseconds. */
const firstPause = 25;
const longestPause = 1_000;

export class Pool {
  readonly #options: PoolOptions;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  readonly #jobs = new Set<Job>();
  #opening = 0;
  #failures = 0;
  #pause: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #closing = new AbortController();

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Runs work on a connection of its own, within the shorter one of the pool's deadline and its own. */
  run<T>(work: (connection: Connection) => Promise<T>, own = Number.POSITIVE_INFINITY): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) {
        reject(closedError());
        return;
      }
      const deadline = Math.min(this.#options.deadline ?? Number.POSITIVE_INFINITY, own);
      let used: Connection | undefined;
      const expire = () => {
        this.#jobs.delete(job);
        used?.discard();
        const waited = used === undefined ? "no connection was free" : "no answer";
        job.fail(new DriverError(`${waited} in ${deadline} ms`, { code: "DEADLINE", answered: false }));
      };
      const late = deadline === Number.POSITIVE_INFINITY ? undefined : setTimeout(expire, deadline);
      const job: Job = {
        async run(connection) {
          used = connection;
          try {
            const result = await work(connection);
            return () => resolve(result);
          } catch (error) {
            return () => reject(error);
          } finally {
            clearTimeout(late);
          }
        },
        fail(error) {
          clearTimeout(late);
          reject(error);
        },
      };
      this.#jobs.add(job);
      this.#pump();
    });
  }

  /** Rejects what waits, and ends the connections once their statements have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    clearTimeout(this.#pause);
    this.#failAll(closedError());
    await Promise.all([...this.#idle, ...this.#busy].map((connection) => connection.close()));
  }

  #pump(): void {
    while (this.#jobs.size > 0) {
      const connection = this.#idle.pop();
      if (connection === undefined) break;
      if (connection.broken) continue;
      const [job] = this.#jobs;
      if (job === undefined) break;
      this.#jobs.delete(job);
      void this.#serve(connection, job);
    }
    while (this.#opening < this.#jobs.size && this.#opening + this.#busy.size < this.#options.size && this.#pause === undefined)
      void this.#open();
  }

  async #serve(connection: Connection, job: Job): Promise<void> {
    this.#busy.add(connection);
    const settle = await job.run(connection);
    this.#busy.delete(connection);
    if (connection.broken) connection.discard();
    else if (!this.#closed) this.#idle.push(connection);
    // The connection is free again before its user goes on, who may have another statement.
    settle();
    this.#pump();
  }

  async #open(): Promise<void> {
    this.#opening += 1;
    try {
      const connection = await this.#options.open(this.#closing.signal);
      if (this.#failures > 0) this.#options.reachable?.(undefined);
      this.#failures = 0;
      if (this.#closed) void connection.close();
      else this.#idle.push(connection);
    } catch (error) {
      if (this.#failures === 0) this.#options.reachable?.(error as DriverError);
      this.#wait();
      if (this.#busy.size === 0) this.#failAll(error as DriverError);
    } finally {
      this.#opening -= 1;
      this.#pump();
    }
  }

  #wait(): void {
    if (this.#closed || this.#pause !== undefined) return;
    const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#failures, 10)) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#pump();
    }, pause);
  }

  #failAll(error: DriverError): void {
    const jobs = [...this.#jobs];
    this.#jobs.clear();
    for (const job of jobs) job.fail(error);
  }
}

function closedError(): DriverError {
  return new DriverError("the connections are closed", { code: "CLOSED", answered: false });
}
