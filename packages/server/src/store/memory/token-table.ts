/** The tokens of rate limits that were granted of late, by the part of a window in which that was. */
import { partLength, type TokenAsk, type TokenGrant } from "../../engine/ports/limits.ts";

type Bucket = { readonly parts: Map<number, number>; expiresAt: number };

export class TokenTable {
  readonly #buckets = new Map<string, Bucket>();

  take(asks: readonly TokenAsk[], now: number): TokenGrant[] {
    return asks.map((ask) => this.#take(ask, now));
  }

  expire(now: number): void {
    for (const [key, { expiresAt }] of this.#buckets) if (expiresAt <= now) this.#buckets.delete(key);
  }

  #take({ tenant, name, limit, per, wanted }: TokenAsk, now: number): TokenGrant {
    const key = JSON.stringify([tenant, name]);
    const bucket = this.#buckets.get(key) ?? { parts: new Map(), expiresAt: 0 };
    this.#buckets.set(key, bucket);
    const { parts } = bucket;
    const length = partLength(per);
    const first = Math.floor((now - per) / length);
    for (const part of parts.keys()) if (part < first) parts.delete(part);
    let granted = 0;
    for (const count of parts.values()) granted += count;
    const tokens = Math.max(0, Math.min(wanted, limit - granted));
    const part = Math.floor(now / length);
    if (tokens > 0) {
      parts.set(part, (parts.get(part) ?? 0) + tokens);
      bucket.expiresAt = now + per + 2 * length;
    }
    if (tokens === wanted) return { tokens, wait: 0 };
    const oldest = Math.min(...parts.keys());
    return { tokens, wait: (oldest + 1) * length + per - now };
  }
}
