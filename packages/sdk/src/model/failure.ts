/**
 * Errors as data.
 *
 * 1. `failureOf` never throws, and what it returns is JSON-able and bounded.
 * 2. `errorOf` runs nobody's constructor.
 */
import { type ErrorRecord, putTogether } from "./error-record.ts";
import type { ErrorClass } from "./errors.ts";
import type { FailureKind } from "./failure-kind.ts";
import type { Payload } from "./history.ts";
import { decodePayload, encodePayload } from "./payload.ts";
import { errorRecord } from "./survey.ts";

/** An error as data: JSON-able, bounded in depth and size, and good enough to be thrown again as the same class. */
export type Failure = {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** Of the failure of an attempt or of a run as it was classified; causes have none. */
  readonly kind?: FailureKind;
  readonly stack?: string;
  readonly cause?: Failure;
  /** Own fields of the error beside name, message, stack, code and cause, as an encoded record. */
  readonly fields?: Payload;
  /** Set when something that is no error was thrown: the value itself, encoded. */
  readonly thrown?: Payload;
};

/** In bytes, for the fields of one error of a chain together. */
const fieldsLimit = 32_768;

/** What was thrown, as data; never throws. */
export function failureOf(thrown: unknown): Failure {
  return fromRecord(errorRecord(thrown));
}

function fromRecord(record: ErrorRecord): Failure {
  const { thrown, fields, cause, ...rest } = record;
  return {
    ...rest,
    ...(cause !== undefined && { cause: fromRecord(cause) }),
    ...(fields !== undefined && { fields: encodeFields(fields) }),
    ...(thrown !== undefined && { thrown: encoded(thrown.value, fieldsLimit) }),
  };
}

function encodeFields(fields: Readonly<Record<string, unknown>>): Payload {
  const whole = tryEncode(fields, fieldsLimit);
  if (whole !== undefined) return whole;
  const kept: Record<string, unknown> = {};
  let left = fieldsLimit;
  for (const [key, value] of Object.entries(fields)) {
    const size = tryEncode(value, left)?.length;
    if (size !== undefined) left -= size;
    Object.defineProperty(kept, key, {
      value: size === undefined ? tooLarge : value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return encodePayload(kept);
}

const tooLarge = "[not recorded: too large]";

function encoded(value: unknown, limit: number): Payload {
  return tryEncode(value, limit) ?? encodePayload(tooLarge);
}

function tryEncode(value: unknown, limit: number): Payload | undefined {
  try {
    return encodePayload(value, { limit });
  } catch {
    return undefined;
  }
}

/**
 * The error that a failure was: of one of `classes` (matched by name) or of Wovyr's or JavaScript's own classes, else an `Error` of that name.
 * A thrown value that was no error stands in the `thrown` property of an `Error`.
 */
export function errorOf(failure: Failure, classes: readonly ErrorClass[] = []): Error {
  return putTogether(toRecord(failure), classes);
}

function toRecord(failure: Failure): ErrorRecord {
  const { thrown, fields, cause, kind: _, ...rest } = failure;
  const decodedFields = fields === undefined ? undefined : tryDecode(fields);
  return {
    ...rest,
    ...(cause !== undefined && { cause: toRecord(cause) }),
    ...(typeof decodedFields === "object" &&
      decodedFields !== null && {
        fields: decodedFields as Record<string, unknown>,
      }),
    ...(thrown !== undefined && { thrown: { value: tryDecode(thrown) } }),
  };
}

function tryDecode(payload: Payload): unknown {
  try {
    return decodePayload(payload);
  } catch {
    return undefined;
  }
}
