/**
 * What bodies are written in, and the headers that carry meaning.
 *
 * 1. `application/json` is the plain view: a Date is RFC 3339 text, a bigint is text, what has no JSON form is refused or shown (`toPlainJson`).
 * 2. `application/vnd.wovyr+json` keeps types: its body is one payload text, read by `decodePayload` and written by `encodePayload`.
 * 3. The request's content type says how its body is read; its `Accept` says how the answer is written. Neither depends on the other.
 */

export const mediaTypes = {
  plain: "application/json",
  typed: "application/vnd.wovyr+json",
  problem: "application/problem+json",
  events: "text/event-stream",
  lines: "application/x-ndjson",
} as const;

export type View = "plain" | "typed";

/** The view that an `Accept` header asks for: typed only where it is named. */
export function viewOf(accept: string | null | undefined): View {
  return typeof accept === "string" && accept.includes(mediaTypes.typed) ? "typed" : "plain";
}

/** How a body of this content type is read, or undefined where it cannot be; `also` is another type of plain JSON. JSON is UTF-8: another charset is refused. */
export function viewOfBody(contentType: string | null | undefined, also?: string): View | undefined {
  if (contentType === mediaTypes.plain) return "plain";
  if (contentType === mediaTypes.typed) return "typed";
  if (typeof contentType !== "string") return undefined;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!parameters.every((parameter) => utf8.test(parameter.trim()))) return undefined;
  if (type.trim() === mediaTypes.plain || type.trim() === also) return "plain";
  return type.trim() === mediaTypes.typed ? "typed" : undefined;
}

/** Whether a body of this content type is lines of JSON. */
export function isLines(contentType: string | null | undefined): boolean {
  if (typeof contentType !== "string") return false;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  return type.trim() === mediaTypes.lines && parameters.every((parameter) => utf8.test(parameter.trim()));
}

const utf8 = /^(?:charset="?utf-?8"?|(?!charset).*)$/;

export const headerNames = {
  idempotencyKey: "idempotency-key",
  replayed: "idempotency-replayed",
  retryAfter: "retry-after",
  lastEventId: "last-event-id",
  /** From one node of a cluster to another: that it is not to be sent on, whom it speaks for, which node is meant, and what proves that. */
  node: "wovyr-node",
  nonce: "wovyr-nonce",
  bodyDigest: "wovyr-body-digest",
  proof: "wovyr-proof",
  tenant: "wovyr-tenant",
  forwarded: "wovyr-forwarded",
} as const;
