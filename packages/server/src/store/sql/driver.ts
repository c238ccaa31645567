/**
 * What the SQL store asks of a driver: one dialect, thin drivers.
 *
 * 1. A rejection is a `DriverError`, which says what the database or the connection to it reported.
 * 2. Statements that write never wait for statements that only read.
 */
export type SqlValue = string | number | boolean | null;

export type SqlLane = "write" | "read";

/** Runs one statement as `SqlDriver.query` does. */
export type SqlQuery = (
  lane: SqlLane,
  text: string,
  params: readonly SqlValue[],
  deadline?: number,
) => Promise<readonly (readonly SqlValue[])[]>;

export interface SqlDriver {
  /**
   * Runs one prepared statement; rows are arrays. Statements return text, integer, double precision and boolean only, so that drivers agree. A deadline, in
   * milliseconds, is for a database that may be silent: it shortens the one that all statements have.
   */
  query(lane: SqlLane, text: string, params: readonly SqlValue[], deadline?: number): Promise<readonly (readonly SqlValue[])[]>;
  /** Runs a script of many statements in one transaction. */
  script(text: string): Promise<void>;
  /** Waits for statements under way; later ones reject. */
  close(): Promise<void>;
}

export type DriverErrorDetails = {
  /** SQLSTATE when the database answered; otherwise what the driver or the operating system calls the failure. */
  readonly code: string;
  /** Whether the database answered: then the transaction was rolled back, or never began. */
  readonly answered: boolean;
  readonly cause?: unknown;
};

export class DriverError extends Error {
  override readonly name = "DriverError";
  readonly code: string;
  readonly answered: boolean;

  constructor(message: string, details: DriverErrorDetails) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = details.code;
    this.answered = details.answered;
  }
}
