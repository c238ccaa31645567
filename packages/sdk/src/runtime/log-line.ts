export type LogLevel = "debug" | "info" | "warn" | "error";

/** A line that a workflow, or the runtime on its behalf, logged in a turn. */
export type LogLine = { readonly level: LogLevel; readonly message: string; readonly data?: object | undefined };

/** Takes lines; silent while a turn is replayed. */
export interface Logger {
  log(level: LogLevel, message: string, data?: object): void;
}
