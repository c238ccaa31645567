import type { Static, TObject } from "@sinclair/typebox";
import type { OperationId, Operations, QueryOf, QueryShape, Route, routes, View } from "@wovyr/sdk/internal";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Answer, taken } from "./answer.ts";

type QueryOfRoute<R extends Route> = R["query"] extends QueryShape ? QueryOf<R["query"]> : undefined;
type BodyOfRoute<R extends Route> = R["body"] extends {
  readonly schema: infer S extends TObject;
}
  ? Static<S>
  : undefined;
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** A request that fits its route: names, query and body are checked. */
export type Call<R extends Route> = {
  readonly operations: Operations;
  readonly names: Readonly<Record<NamesIn<R["path"]>, string>>;
  readonly query: QueryOfRoute<R>;
  readonly body: BodyOfRoute<R>;
  /** Of a route that takes lines of JSON. */
  readonly lines: R["lines"] extends object ? AsyncIterable<string> : undefined;
  readonly idempotencyKey: string | undefined;
  readonly view: View;
  /** The prefix that the API is mounted under, or an empty text. */
  readonly prefix: string;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

/** Serves one operation; rejects with a `WovyrError`. */
export type Handler<K extends OperationId> = (call: Call<(typeof routes)[K]>) => Promise<Answer | typeof taken>;

export type Handlers = { readonly [K in OperationId]: Handler<K> };

/** A handler of whatever operation. */
export type AnyHandler = (call: never) => Promise<Answer | typeof taken>;
