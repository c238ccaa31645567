/** Where faults of the server are written; the SDK's `Log` and anything like it will do. */
export type HttpLog = { error(message: string, data?: object): void };
