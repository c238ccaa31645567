/** What the client's process is asked and answers. */
export type HttpOrder = {
  readonly url: string;
  readonly connections: number;
  readonly inFlight: number;
  readonly seconds: number;
  readonly latencies: number;
};

export type HttpKind = "sdk" | "raw";

export type HttpAsk = { readonly kind: HttpKind; readonly what: "throughput" | "latency" };

export type HttpAnswer = { readonly value: number; readonly p99: number; readonly cpu: number };
