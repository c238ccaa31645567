/**
 * The callers: each starts an order at any node, waits for its result, and begins with the next.
 *
 * 1. A call that fails is made again, at another node and under the same idempotency key, until it is answered: what was begun is never given up.
 * 2. What came of every order is kept, and checked against what it must be.
 */
import { ApiError } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import type { Node } from "./nodes.ts";
import { order } from "./workloads.ts";

export type Second = { readonly latencies: number[]; retries: number };

const payEvery = 5;
/** Between two tries, in milliseconds. */
const pause = 50;

export class Load {
  readonly #clients: readonly Client[];
  readonly #began = performance.now();
  readonly #run: string;
  readonly seconds: Second[] = [];
  readonly wrong: string[] = [];
  started = 0;
  done = 0;
  #ended = false;

  constructor(nodes: readonly Node[], run: string) {
    this.#run = run;
    const retry = { maxAttempts: 1 };
    this.#clients = nodes.map(({ url }) => createClient({ url, retry, requestTimeout: "15s" }));
  }

  get elapsed(): number {
    return (performance.now() - this.#began) / 1_000;
  }

  /** Resolves when all that was begun is answered. */
  async keepUp(callers: number): Promise<void> {
    await Promise.all(Array.from({ length: callers }, () => this.#call()));
  }

  stop(): void {
    this.#ended = true;
  }

  async #call(): Promise<void> {
    while (!this.#ended) {
      this.started += 1;
      const n = this.started;
      const key = `${this.#run}-${n}`;
      const began = performance.now();
      const result = await this.#order(n, { key, pays: n % payEvery === 0 });
      this.#second().latencies.push(performance.now() - began);
      this.done += 1;
      if (result?.key !== key || result.amount !== key.length) this.wrong.push(`${key}: ${JSON.stringify(result)}`);
    }
  }

  async #order(n: number, input: { key: string; pays: boolean }): Promise<{ key: string; amount: number } | undefined> {
    for (let tries = 0; ; tries += 1) {
      const client = this.#clients[(n + tries) % this.#clients.length] as Client;
      try {
        const handle = await client.start(order, input, { idempotencyKey: input.key });
        return await handle.result({ timeout: "10s" });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.#second().retries += 1;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  #second(): Second {
    const at = Math.floor(this.elapsed);
    while (this.seconds.length <= at) this.seconds.push({ latencies: [], retries: 0 });
    return this.seconds[at] as Second;
  }
}
