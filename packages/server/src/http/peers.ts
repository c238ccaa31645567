/**
 * The other nodes of a cluster, over their HTTP API.
 *
 * 1. Each request is sent once. It says that it is not to be sent on, for which tenant it is, and the cluster's secret.
 * 2. An answer is waited for `answerTimeout` longer than the other node was asked to wait; a stream must begin within it, and show a sign of life every
 *    `silence`. Connections are kept alive, and there are as many as calls under way.
 * 3. Without a secret only addresses of this machine are asked; and a loopback address is asked only where the other node runs on this machine.
 */
import { ApiError, headerNames, httpOperations, type Operations, retryOf, sendByDefault, Transport } from "@wovyr/sdk/internal";
import type { Peer, Peers } from "../engine/ports/peers.ts";
import { hostOfProcess } from "../platform/process-name.ts";

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

  operations(tenant: string, { node, url }: Peer): Operations {
    if (url === undefined)
      throw misconfigured(`Node ${node} has no address: let it listen, or say where it is reached with \`cluster.url\`.`);
    this.#check(node, url);
    const name = JSON.stringify([tenant, url]);
    const known = this.#kept.get(name);
    if (known !== undefined) return known;
    const made = httpOperations(this.#transport(tenant, url));
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
    if (!local && secret === undefined)
      throw misconfigured("This node has no `cluster.secret`, without which it asks no other machine: set the same one on all nodes.");
  }

  #transport(tenant: string, url: string): Transport {
    const { secret, answerTimeout = 5_000, silence = 40_000 } = this.#options;
    const headers = {
      [headerNames.forwarded]: "1",
      [headerNames.tenant]: tenant,
      ...(secret !== undefined && { [headerNames.clusterSecret]: secret }),
    };
    return new Transport({
      url: url.replace(/\/+$/, ""),
      headers,
      send: sendByDefault,
      fetch: lively(answerTimeout, silence),
      retry: once,
      requestTimeout: answerTimeout,
    });
  }
}

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
    const timer = setTimeout(() => late.abort(new Error("no answer in time")), answerTimeout);
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
