import type { EngineLog } from "../../src/index.ts";

export type LogLines = { readonly log: EngineLog; readonly lines: string[]; has(text: string): boolean; count(text: string): number };

/** A log that is kept. */
export function logLines(): LogLines {
  const lines: string[] = [];
  const write = (level: string) => (message: string, data?: object) => {
    const error = data !== undefined && "error" in data ? ` ${String(data.error)}` : "";
    lines.push(`${level} ${message}${error}`);
  };
  return {
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    lines,
    has: (text) => lines.some((line) => line.includes(text)),
    count: (text) => lines.filter((line) => line.includes(text)).length,
  };
}
