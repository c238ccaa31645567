import { overFetch, type SendRequest } from "./exchange.ts";

/** How requests are sent where there is no Node: by the global `fetch`. */
export const sendByDefault: SendRequest = overFetch((...args) => fetch(...args));
