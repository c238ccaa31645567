import type { EngineLog } from "../engine/ports/log.ts";

const levels = ["debug", "info", "warn", "error"] as const;
export type ConsoleLevel = (typeof levels)[number];

/** Lines on standard error: time, level, message, and what belongs to it as JSON. */
export function consoleLog(from: ConsoleLevel): EngineLog {
  const write = (level: ConsoleLevel) => (message: string, data?: object) => {
    if (levels.indexOf(level) < levels.indexOf(from)) return;
    process.stderr.write(`${new Date().toISOString()} ${level.padEnd(5)} ${message}${data === undefined ? "" : ` ${details(data)}`}\n`);
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
}

function details(data: object): string {
  try {
    return JSON.stringify(data, (_key, value: unknown) => {
      if (value instanceof Error) return value.stack ?? value.message;
      return typeof value === "bigint" ? value.toString() : value;
    });
  } catch {
    return "(details that cannot be printed)";
  }
}
