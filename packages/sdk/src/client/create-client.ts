import { sendByDefault } from "#default-exchange";
import { type Duration, millisecondsWithin } from "../model/duration.ts";
import { WovyrError } from "../model/errors.ts";
import { checkOptions } from "../model/option.ts";
import { baseUrl } from "./base-url.ts";
import type { Client } from "./client.ts";
import { clientOver } from "./client-over.ts";
import { overFetch } from "./exchange.ts";
import { httpOperations } from "./http-operations.ts";
import { type RetryOptions, retryOf } from "./retry.ts";
import { Transport } from "./transport.ts";

export type ClientOptions = {
  /** Where the orchestrator listens, with the prefix that its API is mounted under. */
  readonly url: string | URL;
  readonly apiKey?: string | undefined;
  /** Default: on Node its own HTTP client, elsewhere the global `fetch`; connections are kept alive. */
  readonly fetch?: typeof fetch | undefined;
  readonly retry?: RetryOptions | undefined;
  /** How long the server may take to answer one try, on top of what it was asked to wait; default 15 s, from 1 ms to 24 days. */
  readonly requestTimeout?: Duration | undefined;
};

const defaultRequestTimeout = 15_000;
/** No timer is longer. */
const requestBounds = ["1ms", "24 days"] as const;

/** A client of an orchestrator behind a URL; throws INVALID_OPTION. Nothing is sent before its first call. */
export function createClient(options: ClientOptions): Client {
  checkOptions(options, ["url", "apiKey", "fetch", "retry", "requestTimeout"], "createClient");
  return clientOver(httpOperations(transportOf(options)));
}

/** Throws INVALID_OPTION. */
export function transportOf({ url, apiKey, fetch, retry, requestTimeout = defaultRequestTimeout }: ClientOptions): Transport {
  // It is sent in a header.
  if (apiKey !== undefined && (typeof apiKey !== "string" || !/^[!-~]+$/.test(apiKey)))
    throw new WovyrError("apiKey must be a text of visible ASCII characters, without spaces and line ends", { code: "INVALID_OPTION" });
  if (fetch !== undefined && typeof fetch !== "function")
    throw new WovyrError(`fetch must be a function, not ${typeof fetch}`, { code: "INVALID_OPTION" });
  return new Transport({
    url: baseUrl(url, "url"),
    apiKey,
    send: fetch === undefined ? sendByDefault : overFetch((...args) => fetch(...args)),
    fetch: (...args) => (fetch ?? globalThis.fetch)(...args),
    retry: retryOf(retry),
    requestTimeout: millisecondsWithin(requestTimeout, requestBounds, "requestTimeout"),
  });
}
