/** Keeps what engine and workflows log. */
import type { EngineLog } from "@wovyr/server/internal";

export type LogLine = { readonly level: keyof EngineLog; readonly message: string; readonly data: object | undefined };

export class LogLines implements EngineLog {
  readonly lines: LogLine[] = [];

  debug(message: string, data?: object): void {
    this.lines.push({ level: "debug", message, data });
  }

  info(message: string, data?: object): void {
    this.lines.push({ level: "info", message, data });
  }

  warn(message: string, data?: object): void {
    this.lines.push({ level: "warn", message, data });
  }

  error(message: string, data?: object): void {
    this.lines.push({ level: "error", message, data });
  }
}
