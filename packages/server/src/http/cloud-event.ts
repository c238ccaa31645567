/**
 * Requests that carry a CloudEvent.
 *
 * 1. Structured: the body is the event. Binary: its attributes are `ce-` headers, and the body is its data.
 * 2. An attribute that is null is absent. One that the specification does not name is taken when it may be an extension.
 * 3. Violations point at where an attribute stands: into the body, or at its header.
 */
import { ApiError, cloudEventType, type Route, type Violation, violation } from "@wovyr/sdk/internal";
import type { FastifyRequest } from "fastify";
import { bodyOf } from "./body.ts";

const required = ["specversion", "id", "source", "type"] as const;
const known = [...required, "subject", "time", "dataschema"] as const;
const extension = /^[a-z0-9]+$/;

/** The event of a request, checked; throws an `ApiError`. */
export function cloudEventOf(request: FastifyRequest, route: Route, check: (event: unknown) => void): unknown {
  if (!isBinary(request)) {
    const event = withoutNulls(bodyOf(request, route, cloudEventType));
    check(event);
    checkTexts(event as object, "/");
    return event;
  }
  const event = { ...attributesOf(request), ...dataOf(request, route) };
  try {
    check(event);
  } catch (error) {
    throw error instanceof ApiError ? ofHeaders(error) : error;
  }
  checkTexts(event, header(""));
  return event;
}

/** The pointer to an attribute of the event that a request carries. */
export const attributePointer = (request: FastifyRequest, attribute: string): string =>
  isBinary(request) ? header(attribute) : `/${attribute}`;

/** The pointer to the data of the event that a request carries. */
export const dataPointer = (request: FastifyRequest): string => (isBinary(request) ? "" : "/data");

const header = (attribute: string) => `/headers/ce-${attribute}`;

function isBinary({ headers }: FastifyRequest): boolean {
  if (headers["content-type"]?.toLowerCase().startsWith(cloudEventType) === true) return false;
  return required.some((attribute) => headers[`ce-${attribute}`] !== undefined);
}

function attributesOf({ headers }: FastifyRequest): object {
  return Object.fromEntries(
    known.flatMap((attribute) => {
      const value = headers[`ce-${attribute}`];
      return typeof value === "string" ? [[attribute, decoded(attribute, value)]] : [];
    }),
  );
}

/** What a header says: quotes around it are taken off, then what is percent-encoded is decoded. */
function decoded(attribute: string, value: string): string {
  const text = /^".*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, "$1") : value;
  try {
    if (/^[\x20-\x7e]*$/.test(text)) return decodeURIComponent(text);
  } catch {
    // a percent sign that begins no UTF-8 character
  }
  throw new ApiError(`The header ce-${attribute} cannot be read: what is not visible ASCII is percent-encoded, as UTF-8`, {
    code: "MALFORMED_REQUEST",
    errors: [{ pointer: header(attribute), message: "must be percent-encoded UTF-8" }],
  });
}

/** An empty body is no data. */
function dataOf(request: FastifyRequest, route: Route): { readonly data?: unknown } {
  const { body } = request;
  const empty = body === undefined || (Buffer.isBuffer(body) && body.length === 0);
  return empty ? {} : { data: bodyOf(request, route) };
}

function withoutNulls(event: unknown): unknown {
  if (typeof event !== "object" || event === null || Object.getPrototypeOf(event) !== Object.prototype) return event;
  return Object.fromEntries(Object.entries(event).filter(([attribute, value]) => value !== null || attribute === "data"));
}

/** What a schema cannot say: names of attributes, and texts without half a character. */
function checkTexts(event: object, at: string): void {
  const violations: Violation[] = [];
  for (const [attribute, value] of Object.entries(event)) {
    const pointer = `${at}${attribute.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (attribute === "data_base64")
      violations.push({ pointer, message: "is not taken: the data of an event is JSON here; give it as `data`" });
    else if (!extension.test(attribute)) violations.push({ pointer, message: "is no attribute: their names are of a-z and 0-9" });
    else if (attribute !== "data" && typeof value === "string" && !value.isWellFormed())
      violations.push({ pointer, message: "holds half a character" });
  }
  if (violations.length === 0) return;
  throw violation("The event", violations);
}

/** The same refusal, of attributes that stand in headers. */
function ofHeaders(error: ApiError): ApiError {
  const errors = error.errors.map(({ pointer, message }) => ({ pointer: header(pointer.slice(1)), message }));
  return errors.length === 0 ? error : violation("The event", errors, error.code);
}
