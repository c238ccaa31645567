/** Where the engine and its workflows write their lines. */
export interface EngineLog {
  debug(message: string, data?: object): void;
  info(message: string, data?: object): void;
  warn(message: string, data?: object): void;
  error(message: string, data?: object): void;
}

/** A log whose failures harm nobody: a line that it cannot write is lost. */
export function guarded(log: EngineLog): EngineLog {
  const guard = (write: (message: string, data?: object) => void) => (message: string, data?: object) => {
    try {
      write(message, data);
    } catch {
      // There is nobody left to tell.
    }
  };
  return {
    debug: guard((message, data) => log.debug(message, data)),
    info: guard((message, data) => log.info(message, data)),
    warn: guard((message, data) => log.warn(message, data)),
    error: guard((message, data) => log.error(message, data)),
  };
}
