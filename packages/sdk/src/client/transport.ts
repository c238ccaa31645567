/**
 * One exchange with the server.
 *
 * 1. Every failure to get an answer is an `ApiError` UNREACHABLE that names the URL and why; every answer that refuses is the `ApiError` it describes.
 * 2. A try has a time limit of its own; what is left behind by it (timer, listener, connection) is released when it ends.
 */
import { ApiError } from "../model/errors.ts";
import { decodePayload } from "../model/payload.ts";
import { headerNames, mediaTypes } from "../protocol/media.ts";
import { errorOfProblem } from "../protocol/problem.ts";
import type { HttpAnswer, SendRequest } from "./exchange.ts";
import { patiently, type Retry, retrying } from "./retry.ts";

export type TransportOptions = {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly send: SendRequest;
  /** For event streams. */
  readonly fetch: typeof fetch;
  readonly retry: Retry;
  /** Milliseconds that the server may take to answer, on top of what it was asked to wait. */
  readonly requestTimeout: number;
};

export type Exchange = {
  readonly method: string;
  /** With its query string. */
  readonly path: string;
  readonly body?: string | undefined;
  /** Default: the typed view. */
  readonly bodyType?: string;
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds that the server is asked to wait. */
  readonly wait?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether there is no second try: nothing would tell that the first one was done. */
  readonly once?: true;
  /** Statuses from 400 on that are answers, not errors. */
  readonly accepted?: readonly number[];
};

export type Reply = { readonly status: number; readonly header: HttpAnswer["header"]; readonly body: unknown };

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  get retry(): Retry {
    return this.#options.retry;
  }

  /** Sends until it is answered or given up; `retry` says how often. One that must not be repeated is sent once. */
  call(exchange: Exchange): Promise<Reply> {
    const { retry } = this.#options;
    if (exchange.once === true) return this.#once(exchange, 1);
    const patient = exchange.wait === undefined ? retry : patiently(retry, exchange.wait);
    return retrying(patient, exchange.signal, (tries) => this.#once(exchange, tries));
  }

  /** Opens a stream, of events unless another type is named, with a single try; the response is a 200 or 204. */
  async open(path: string, lastEventId: string | undefined, signal: AbortSignal, type: string = mediaTypes.events): Promise<Response> {
    const headers = {
      ...this.#headers(`${type}, ${mediaTypes.typed}`),
      ...(lastEventId !== undefined && { [headerNames.lastEventId]: lastEventId }),
    };
    const response = await this.#reach(path, 1, signal, (url) => this.#options.fetch(url, { method: "GET", headers, signal }));
    if (response.status >= 400)
      throw refusal(`${this.#options.url}${path}`, {
        status: response.status,
        header: (name) => response.headers.get(name),
        text: await response.text().catch(() => ""),
      });
    return response;
  }

  async #once(
    { method, path, body, bodyType = mediaTypes.typed, idempotencyKey, wait = 0, signal, accepted }: Exchange,
    tries: number,
  ): Promise<Reply> {
    signal?.throwIfAborted();
    const limit = new AbortController();
    const stop = () => limit.abort(signal?.reason);
    const timer = setTimeout(() => limit.abort(new DOMException("no answer in time", "TimeoutError")), this.#options.requestTimeout + wait);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const headers = {
        ...this.#headers(mediaTypes.typed),
        ...(body !== undefined && { "content-type": bodyType }),
        ...(idempotencyKey !== undefined && { [headerNames.idempotencyKey]: idempotencyKey }),
      };
      const answer = await this.#reach(path, tries, signal, (url) =>
        this.#options.send({ url, method, headers, body, signal: limit.signal }),
      );
      if (answer.status >= 400 && !accepted?.includes(answer.status)) throw refusal(`${this.#options.url}${path}`, answer);
      return {
        status: answer.status,
        header: answer.header,
        body: answer.status === 204 ? undefined : answerOf(answer.text, `${this.#options.url}${path}`),
      };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  #headers(accept: string): Record<string, string> {
    const { apiKey, headers } = this.#options;
    return { ...headers, accept, ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }) };
  }

  async #reach<T>(path: string, tries: number, signal: AbortSignal | undefined, send: (url: string) => Promise<T>): Promise<T> {
    const url = `${this.#options.url}${path}`;
    try {
      return await send(url);
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(url, tries, error);
    }
  }
}

function answerOf(text: string, url: string): unknown {
  try {
    return decodePayload(text);
  } catch (cause) {
    throw new ApiError(`${url} did not answer as a Wovyr server does`, { code: "UNREACHABLE", retryable: false, cause });
  }
}

function refusal(url: string, { status, header, text }: HttpAnswer): ApiError {
  return errorOfProblem(status, parsed(text), retryAfterOf(header(headerNames.retryAfter)), url);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // something between client and server answered
  }
}

/** Milliseconds of a `Retry-After` header: seconds, or a date. */
function retryAfterOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  const delay = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(delay) ? Math.max(0, delay) : undefined;
}

function unreachable(url: string, tries: number, error: unknown): ApiError {
  const after = tries === 1 ? "" : ` (try ${tries})`;
  return new ApiError(`${url} cannot be reached${after}: ${reasonOf(error)}`, { code: "UNREACHABLE", cause: error });
}

/** `fetch` hides why it failed in the cause of its error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return cause.errors.map(reasonOf).join("; ");
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
}
