import { ApiError, headerNames, idempotencyKeyPattern } from "@wovyr/sdk/internal";
import type { FastifyRequest } from "fastify";

/** The request's `Idempotency-Key`, if it has one; throws MALFORMED_REQUEST when it may not be one. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers[headerNames.idempotencyKey];
  if (key === undefined || (typeof key === "string" && idempotencyKeyPattern.test(key))) return key;
  throw new ApiError("Idempotency-Key must be 1 to 255 visible ASCII characters, given once", {
    code: "MALFORMED_REQUEST",
    errors: [
      {
        pointer: `/headers/${headerNames.idempotencyKey}`,
        message: "must be 1 to 255 visible ASCII characters",
      },
    ],
  });
}
