/** One call of a route: its path and query filled in, its body encoded, its idempotency key made. */
import { nanoid } from "nanoid";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkName } from "../model/name.ts";
import { encodePayload } from "../model/payload.ts";
import { headerNames } from "../protocol/media.ts";
import { type QueryOf, type QueryShape, writeQuery } from "../protocol/query.ts";
import { pathOf, type Route } from "../protocol/routes.ts";
import type { Exchange, Reply, Transport } from "./transport.ts";

export type Names = Readonly<Record<string, string>>;
export type Query<R extends Route> = R extends { readonly query: infer Q extends QueryShape } ? QueryOf<Q> : Readonly<Record<never, never>>;

/** `body` is undefined on a route without one. */
export type Sending<R extends Route> = {
  readonly query?: Query<R>;
  readonly body?: object;
  readonly idempotencyKey?: string | undefined;
} & Pick<Exchange, "wait" | "signal" | "accepted" | "once">;

export type HttpCall = <R extends Route>(route: R, names: Names, sending?: Sending<R>) => Promise<Reply>;

export const httpCall =
  (transport: Transport): HttpCall =>
  async (route, names, { query, body, idempotencyKey, ...rest } = {}) =>
    transport.call({
      ...rest,
      method: route.method,
      path: targetOf(route, names, query),
      ...(body !== undefined && { body: encodePayload(body, { limit: Number.POSITIVE_INFINITY, what: "the request" }) }),
      ...(route.changes && { idempotencyKey: idempotencyKey === undefined ? nanoid() : checkedKey(idempotencyKey) }),
    });

export function targetOf<R extends Route>(route: R, names: Names, query: Query<R> | undefined): string {
  for (const [name, value] of Object.entries(names)) checkName(value, name === "id" ? "the id of an instance" : "the name");
  return pathOf(route, names) + (query === undefined || route.query === undefined ? "" : writeQuery(route.query, query));
}

export function isReplayed(reply: Reply): boolean {
  return reply.header(headerNames.replayed) === "true";
}
