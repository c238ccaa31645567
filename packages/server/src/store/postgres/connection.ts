/**
 * One connection to Postgres, from its socket to its end.
 *
 * 1. It runs one statement at a time and never reconnects: what failed in any way that the database did not answer is broken for good.
 * 2. A statement always settles. The driver forgets one that is sent between a socket's error and its close; here the close rejects it.
 */
import { connect, type Socket } from "node:net";
import postgres from "postgres";
import { DriverError, type SqlValue } from "../sql/driver.ts";

export type ConnectionOptions = {
  readonly url: string;
  /** False behind a pooler that shares sessions between clients. */
  readonly prepare: boolean;
  /** Milliseconds. */
  readonly connectTimeout: number;
  /** Whether the database is asked for its types, so that arrays of them can be read and written. */
  readonly types?: boolean;
  /** Hears notifications of channels that the connection listens to. */
  readonly notified?: (channel: string, payload: string) => void;
  /** Hears once that the connection is over. */
  readonly ended?: () => void;
};

export type SqlRows = readonly (readonly SqlValue[])[];

/** What postgres.js hands to its (untyped) `socket` option. */
type Target = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** SQLSTATE classes after which the server ends the session. */
const fatal = new Set(["57P01", "57P02", "57P03", "57P05"]);

/** Seconds; the store has waited for its statements before. */
const closeTimeout = 0.5;

export class Connection {
  readonly #sql: postgres.Sql;
  readonly #prepare: boolean;
  #broken = false;
  #socket: Socket | undefined;
  #lost: ((error: DriverError) => void) | undefined;
  readonly #ended: (() => void) | undefined;

  private constructor(options: ConnectionOptions) {
    this.#prepare = options.prepare;
    this.#ended = options.ended;
    const settings = {
      max: 1,
      prepare: options.prepare,
      fetch_types: options.types ?? false,
      connect_timeout: options.connectTimeout / 1_000,
      idle_timeout: 0,
      max_lifetime: null,
      onnotice: () => {},
      onnotify: options.notified,
      onclose: () => this.#closed(),
      connection: { application_name: "wovyr" },
      socket: this.#socketFactory(options.connectTimeout),
    };
    this.#sql = postgres(options.url, settings);
  }

  /** Connects; rejects with a `DriverError` within the timeout, or at once when the signal is aborted. */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<Connection> {
    const connection = new Connection(options);
    const { connectTimeout } = options;
    const stop = () => connection.#fail(new DriverError("the connections are closed", { code: "CLOSED", answered: false }));
    signal.addEventListener("abort", stop);
    const late = setTimeout(() => {
      connection.#fail(new DriverError(`no connection in ${connectTimeout} ms`, { code: "CONNECT_TIMEOUT", answered: false }));
    }, connectTimeout);
    try {
      await connection.script("select 1");
      return connection;
    } catch (error) {
      connection.discard();
      throw error;
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", stop);
    }
  }

  get broken(): boolean {
    return this.#broken;
  }

  run(text: string, params: readonly SqlValue[]): Promise<SqlRows> {
    return this.#settled(async () => {
      const rows = await this.#sql.unsafe(text, [...params], { prepare: this.#prepare }).values();
      return rows as unknown as SqlRows;
    });
  }

  async script(text: string): Promise<void> {
    await this.#settled(() => this.#sql.unsafe(text).simple());
  }

  /** Lends the driver's client itself; the connection's end rejects, whatever the work is waiting for. */
  lend<T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#lost = reject;
      work(this.#sql).then(resolve, reject);
    }).finally(() => {
      this.#lost = undefined;
    });
  }

  /** Ends it without waiting; a statement under way rejects. */
  discard(): void {
    this.#broken = true;
    this.#sql
      .end({ timeout: 0 })
      .catch(() => {})
      .finally(() => this.#socket?.destroy());
    this.#fail(new DriverError("the connection was given up", { code: "CONNECTION_DESTROYED", answered: false }));
  }

  async close(): Promise<void> {
    this.#broken = true;
    await this.#sql.end({ timeout: closeTimeout });
    // A peer that does not answer would leave it half open, and the process with it.
    this.#socket?.destroy();
  }

  async #settled<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#lost = reject;
        work().then(resolve, reject);
      });
    } catch (error) {
      const failure = driverError(error);
      if (!failure.answered || fatal.has(failure.code)) this.#broken = true;
      throw failure;
    } finally {
      this.#lost = undefined;
    }
  }

  #closed(): void {
    this.#broken = true;
    this.#ended?.();
    // The driver's own rejection, if there is one, comes first.
    setImmediate(() => this.#fail(new DriverError("the connection was closed", { code: "CONNECTION_CLOSED", answered: false })));
  }

  #fail(error: DriverError): void {
    this.#lost?.(error);
  }

  /** Sockets for each host of the URL in turn, each once: the driver's own attempts to connect again end here. */
  #socketFactory(timeout: number): (target: Target) => Promise<Socket> {
    let next = 0;
    return async ({ host, port, path }) => {
      let failure: unknown = new DriverError("the connection was closed", { code: "CONNECTION_CLOSED", answered: false });
      while (next < host.length) {
        const at = next;
        next += 1;
        try {
          const where = path ? { path } : { host: host[at] ?? "localhost", port: port[at] ?? 5432 };
          const socket = await openSocket(where, timeout, (opening) => {
            this.#socket = opening;
          });
          if (!this.#broken) return socket;
          socket.destroy();
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    };
  }
}

type Place = { path: string } | { host: string; port: number };

/** `opening` gets the socket before it is connected; destroying it rejects. */
function openSocket(where: Place, timeout: number, opening: (socket: Socket) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...where, timeout, noDelay: true });
    opening(socket);
    const failed = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.once("error", failed);
    socket.once("close", () => failed(new DriverError("the connection was closed", { code: "CONNECTION_CLOSED", answered: false })));
    socket.once("timeout", () => failed(new DriverError(`no connection in ${timeout} ms`, { code: "CONNECT_TIMEOUT", answered: false })));
    socket.once("connect", () => {
      socket.removeAllListeners();
      socket.setTimeout(0);
      // The name that TLS checks the certificate against.
      resolve(Object.assign(socket, where));
    });
  });
}

function driverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  if (error instanceof postgres.PostgresError) return new DriverError(error.message, { code: error.code, answered: true, cause: error });
  const { code, message } = error as { code?: unknown; message?: unknown };
  const name = typeof code === "string" ? code : "CONNECTION";
  return new DriverError(typeof message === "string" && message !== "" ? message : name, { code: name, answered: false, cause: error });
}
