import type { Failure } from "../model/failure.ts";
import { decodePayload, encodePayload } from "../model/payload.ts";
import type { FailureView } from "./operations.ts";

/** A failure with its fields decoded, as the API shows it. */
export function viewOfFailure(failure: Failure): FailureView {
  const { fields, thrown, cause, ...plain } = failure;
  return {
    ...plain,
    ...(cause !== undefined && { cause: viewOfFailure(cause) }),
    ...(fields !== undefined && { fields: decodePayload(fields) }),
    ...(thrown !== undefined && { thrown: decodePayload(thrown) }),
  };
}

/** The failure that a view shows, ready for `errorOf`. */
export function failureOfView(view: FailureView): Failure {
  const { fields, thrown, cause, ...plain } = view;
  return {
    ...plain,
    ...(cause !== undefined && { cause: failureOfView(cause) }),
    ...(fields !== undefined && {
      fields: encodePayload(fields, {
        limit: Number.POSITIVE_INFINITY,
        what: "fields of an error",
      }),
    }),
    ...(thrown !== undefined && {
      thrown: encodePayload(thrown, {
        limit: Number.POSITIVE_INFINITY,
        what: "a thrown value",
      }),
    }),
  };
}
