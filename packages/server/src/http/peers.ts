/**
 * The other nodes of a cluster, over their HTTP API.
 *
 * 1. Each request is sent once. It says that it is not to be sent on, for which tenant and which node it is, and proves that with the cluster's secret. An
 *    answer that does not prove to be that node's is none.
 * 2. An answer is waited for `answerTimeout` longer than the other node was asked to wait; a stream must begin within it, and show a sign of life every
 *    `silence`. Connections are kept alive, and there are as many as calls under way.
 * 3. Without a secret only addresses of this machine are asked; and a loopback address is asked only where the other node runs on this machine.
 */
import {
  ApiError,
  headerNames,
  httpOperations,
  type Operations,
  retryOf,
  sendByDefault,
  Transport,
  type TransportOptions,
} from "@wovyr/sdk/internal";
import { nanoid } from "nanoid";
import { type Peer, type Peers, StrangeAnswer } from "../engine/ports/peers.ts";
import { isOwnAddress } from "../platform/own-address.ts";
import { hostOfProcess } from "../platform/process-name.ts";
import { bodyDigest, type CallKind, callKinds, isSameProof, proofOfAnswer, proofOfCall } from "./call-proof.ts";

export type HttpPeersOptions = {
  readonly secret: string | undefined;
  /** The name of this machine. */
  readonly host: string;
  /** Milliseconds; default 5,000. */
  readonly answerTimeout?: number;
  /** Milliseconds; default 40,000. */
  readonly silence?: number;
};

const once = retryOf({ maxAttempts: 1 });
/** Tenants and nodes whose operations are kept ready. */
const mostKept = 10_000;

export class HttpPeers implements Peers {
  readonly #options: HttpPeersOptions;
  readonly #kept = new Map<string, Operations>();

  constructor(options: HttpPeersOptions) {
    this.#options = options;
  }

  operations(tenant: string, peer: Peer): Operations {
    return this.#operations(tenant, peer, callKinds.forwarded);
  }

  delegated(tenant: string, peer: Peer): Pick<Operations, "start"> {
    return this.#operations(tenant, peer, callKinds.delegated);
  }

  #operations(tenant: string, { node, url }: Peer, kind: CallKind): Operations {
    if (url === undefined)
      throw misconfigured(`Node ${node} has no address: let it listen, or say where it is reached with \`cluster.url\`.`);
    const name = JSON.stringify([tenant, node, url, kind]);
    const known = this.#kept.get(name);
    if (known !== undefined) return known;
    this.#check(node, url);
    const made = httpOperations(this.#transport(tenant, node, url.replace(/\/+$/, ""), kind));
    if (this.#kept.size >= mostKept) this.#kept.clear();
    this.#kept.set(name, made);
    return made;
  }

  #check(node: string, url: string): void {
    const { secret, host } = this.#options;
    const local = isLoopback(url);
    if (local && hostOfProcess(node) !== host)
      throw misconfigured(
        `Node ${node} listens on ${url}, where only its own machine reaches it: let it listen on another address, or say where it is reached with \`cluster.url\`.`,
      );
    if (!local && secret === undefined && !(hostOfProcess(node) === host && isOwnAddress(new URL(url).hostname)))
      throw misconfigured("This node has no `cluster.secret`, without which it asks no other machine: set the same one on all nodes.");
  }

  #transport(tenant: string, node: string, url: string, kind: CallKind): Transport {
    const { secret, answerTimeout = 5_000, silence = 40_000 } = this.#options;
    const introduced = (call: Omit<Said, "nonce">): Introduction => introduction(secret, { ...call, nonce: nanoid() });
    const fetched = lively(answerTimeout, silence);
    return new Transport({
      url,
      send: async (request) => {
        const path = request.url.slice(url.length);
        const { headers, check } = introduced({ tenant, node, kind, path, ...request });
        const answer = await sendByDefault({ ...request, headers });
        check(answer.status, answer.header, answer.text);
        return answer;
      },
      fetch: async (input, init) => {
        const path = String(input).slice(url.length);
        const { headers, check } = introduced({ tenant, node, kind, path, method: "GET", headers: init?.headers as Said["headers"] });
        const response = await fetched(input, { ...init, headers, redirect: "manual" });
        check(response.status, (name) => response.headers.get(name), "");
        return response;
      },
      retry: once,
      requestTimeout: answerTimeout,
    });
  }
}

type Said = Pick<Parameters<TransportOptions["send"]>[0], "method" | "headers"> & {
  readonly tenant: string;
  readonly node: string;
  readonly kind: CallKind;
  readonly nonce: string;
  readonly path: string;
  readonly body?: string | undefined;
};

type Introduction = {
  readonly headers: Readonly<Record<string, string>>;
  /** Throws `StrangeAnswer`. */
  readonly check: (status: number, header: (name: string) => string | null, text: string) => void;
};

/** The headers that a call is sent with, and whether an answer is that of the node it was sent to. */
function introduction(secret: string | undefined, { tenant, node, kind, nonce, method, path, headers, body }: Said): Introduction {
  const digest = bodyDigest(body);
  const idempotencyKey = headers[headerNames.idempotencyKey] ?? "";
  const proof = secret === undefined ? undefined : proofOfCall(secret, { node, nonce, kind, tenant, method, path, idempotencyKey, digest });
  return {
    headers: {
      ...headers,
      [headerNames.forwarded]: kind,
      [headerNames.tenant]: tenant,
      [headerNames.node]: node,
      ...(proof !== undefined && { [headerNames.nonce]: nonce, [headerNames.bodyDigest]: digest, [headerNames.proof]: proof }),
    },
    check: (status, header, text) => {
      const named = header(headerNames.node);
      const isProved = secret === undefined || isSameProof(header(headerNames.proof), proofOfAnswer(secret, { node, nonce }));
      if (named === node && isProved) return;
      if (gateway.has(status)) throw new Error(`something between answers ${status}`);
      const [, code] = /"code":"([A-Z_]{1,60})"/.exec(text) ?? [];
      const answer = `it answers ${status}${code === undefined ? "" : ` ${code}`}`;
      if (named === node) throw new StrangeAnswer(`${answer} as node ${node}, and does not prove to have this node's \`cluster.secret\``);
      throw new StrangeAnswer(
        `${answer} ${named === null ? "and does not say which node it is" : `as node ${named.slice(0, longestShown)}`}`,
      );
    },
  };
}

/** What proxies say when the node behind them does not answer. */
const gateway: ReadonlySet<number> = new Set([502, 503, 504]);
const longestShown = 300;

export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function misconfigured(message: string): ApiError {
  return new ApiError(message, { code: "CLUSTER_MISCONFIGURED", retryAfter: 1_000 });
}

/** A `fetch` whose answers must begin in time, and whose bodies fail when nothing comes for too long. */
function lively(answerTimeout: number, silence: number): typeof fetch {
  return async (input, init) => {
    const late = new AbortController();
    const signal = init?.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
    const timer = setTimeout(() => late.abort(new DOMException("no answer in time", "TimeoutError")), answerTimeout);
    const response = await fetch(input, { ...init, signal }).finally(() => clearTimeout(timer));
    if (response.body === null) return response;
    return new Response(
      watched(response.body, silence, () => late.abort(new Error("no sign of life"))),
      response,
    );
  };
}

function watched(body: ReadableStream<Uint8Array>, silence: number, giveUp: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const timer = setTimeout(giveUp, silence);
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
