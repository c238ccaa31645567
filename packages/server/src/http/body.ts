/**
 * Request bodies.
 *
 * 1. A body over the limit is answered, never reset: what is still under way is read and dropped first, so that the client gets to see the answer.
 * 2. `__proto__` and `constructor` are keys like any other: `JSON.parse` makes own properties of them, and nothing here copies by assignment.
 * 3. Bytes that are not UTF-8 are refused; nothing is replaced silently.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { ApiError, decodePayload, isLines, mediaTypes, type Route, viewOfBody } from "@wovyr/sdk/internal";
import type { FastifyRequest } from "fastify";

/** Stands for a body that was longer than the limit. */
class TooLarge {
  readonly limit: number;
  constructor(limit: number) {
    this.limit = limit;
  }
}

/** What a route says of the bodies that it takes. */
export type BodyConfig = { readonly bodyLimit?: number | undefined };

type Done = (error: Error | null, body?: Buffer | TooLarge) => void;

/** How much of a body over the limit is read and dropped before it is answered, in bytes; of what comes after that the connection takes care. */
const longestDrain = 256 * 1024 * 1024;

/** A content type parser that hands on the bytes, whatever their type; the route decides what it reads. `usual` is the limit of routes that have none of their own. */
export function bodyReader(usual: number): (request: FastifyRequest, payload: IncomingMessage, done: Done) => void {
  return (request, payload, done) => {
    const limit = (request.routeOptions.config as BodyConfig).bodyLimit ?? usual;
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = () =>
      payload.removeListener("data", take).removeListener("end", end).removeListener("error", fail).removeListener("close", fail);
    const take = (chunk: Buffer) => {
      length += chunk.length;
      if (length <= limit) chunks.push(chunk);
      else if (length > longestDrain) finish(new TooLarge(limit));
      else chunks.length = 0;
    };
    const finish = (body: Buffer | TooLarge) => {
      stop();
      payload.resume();
      done(null, body);
    };
    const end = () => finish(length > limit ? new TooLarge(limit) : Buffer.concat(chunks, length));
    const fail = () => {
      stop();
      done(malformed("The body could not be read to its end"));
    };
    payload.on("data", take).on("end", end).on("error", fail).on("close", fail);
  };
}

/** The body of a request to this route, not yet checked against its schema; `also` is another type of JSON that it may have. Throws an `ApiError`. */
export function bodyOf(request: FastifyRequest, { body }: Route, also?: string): unknown {
  const raw = bytesOf(request);
  if (!Buffer.isBuffer(raw) || raw.length === 0) {
    if (body?.required) throw malformed("This operation needs a body");
    return {};
  }
  const view = viewOfBody(request.headers["content-type"], also);
  if (view === undefined)
    throw unsupported(`a body of type ${request.headers["content-type"] ?? "unknown"}`, [
      ...(also === undefined ? [] : [also]),
      ...bodyTypes,
    ]);
  checkText(request, raw);
  return view === "plain" ? parse(raw.toString(), JSON.parse) : parse(raw.toString(), decodePayload);
}

/** The lines of a request's body, one after another; throws an `ApiError`. */
export function linesOf(request: FastifyRequest): AsyncIterable<string> {
  const raw = bytesOf(request);
  if (!Buffer.isBuffer(raw) || raw.length === 0) throw malformed("This operation needs a body");
  if (!isLines(request.headers["content-type"]))
    throw unsupported(`a body of type ${request.headers["content-type"] ?? "unknown"}`, [mediaTypes.lines]);
  checkText(request, raw);
  return linesIn(raw);
}

async function* linesIn(raw: Buffer): AsyncGenerator<string> {
  for (let from = 0; from < raw.length; ) {
    const end = raw.indexOf(newline, from);
    yield raw.toString("utf8", from, end < 0 ? raw.length : end);
    from = end < 0 ? raw.length : end + 1;
  }
}

const newline = 10;

function bytesOf({ body }: FastifyRequest): unknown {
  if (body instanceof TooLarge) throw new ApiError(`The body is longer than ${body.limit} bytes`, { code: "BODY_TOO_LARGE" });
  return body;
}

function checkText(request: FastifyRequest, raw: Buffer): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") throw unsupported(`the content encoding ${encoding}`);
  if (!isUtf8(raw)) throw malformed("The body is not UTF-8");
}

function parse(text: string, read: (text: string) => unknown): unknown {
  try {
    return read(text);
  } catch (error) {
    throw malformed(`The body cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function malformed(message: string): ApiError {
  return new ApiError(message, { code: "MALFORMED_REQUEST" });
}

const bodyTypes: readonly string[] = [mediaTypes.plain, mediaTypes.typed];
const listed = new Intl.ListFormat("en", { type: "disjunction", style: "narrow" });

function unsupported(what: string, instead = bodyTypes): ApiError {
  return new ApiError(`This operation does not read ${what}: send ${listed.format(instead)}, in UTF-8`, {
    code: "UNSUPPORTED_MEDIA_TYPE",
  });
}
