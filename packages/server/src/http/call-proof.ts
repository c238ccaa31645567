/**
 * How two nodes of a cluster know each other by a call and by its answer.
 *
 * 1. A call names the node that it is for. The answer names the node that gives it.
 * 2. With a secret both are proved by an HMAC-SHA256 that is keyed with it, and the secret itself is never sent: the call over its node, nonce, tenant,
 *    method, path, idempotency key and the digest of its body, the answer over the same node and nonce.
 * 3. A nonce is not remembered: whoever reads the network can send the same call again.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** Whether a call is to be answered by the node that gets it alone, or in the place of the one that sends it. */
export const callKinds = { forwarded: "1", delegated: "delegated" } as const;
export type CallKind = (typeof callKinds)[keyof typeof callKinds];

export type ProvedCall = {
  /** The name of the node that is asked. */
  readonly node: string;
  /** Of this call alone. */
  readonly nonce: string;
  readonly kind: string;
  readonly tenant: string;
  readonly method: string;
  /** With its query string, and without the prefix that the API is mounted under. */
  readonly path: string;
  readonly idempotencyKey: string;
  /** `bodyDigest` of the body. */
  readonly digest: string;
};

export const proofOfCall = (secret: string, { node, nonce, kind, tenant, method, path, idempotencyKey, digest }: ProvedCall): string =>
  mac(secret, ["call", node, nonce, kind, tenant, method, path, idempotencyKey, digest]);

export const proofOfAnswer = (secret: string, { node, nonce }: Pick<ProvedCall, "node" | "nonce">): string =>
  mac(secret, ["answer", node, nonce]);

/** Of no body: an empty text. */
export function bodyDigest(body: string | Buffer | undefined): string {
  return body === undefined || body.length === 0 ? "" : createHash("sha256").update(body).digest("base64url");
}

/** Takes the same time wherever two proofs differ. */
export function isSameProof(one: unknown, other: string): boolean {
  if (typeof one !== "string") return false;
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function mac(secret: string, said: readonly string[]): string {
  return createHmac("sha256", secret).update(JSON.stringify(said)).digest("base64url");
}
