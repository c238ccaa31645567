import { ApiError } from "./errors.ts";

/** 1 to 255 visible ASCII characters. */
export const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/;

/** The key itself; throws INVALID_OPTION for one that no header could carry, in process as over HTTP. */
export function checkedKey(key: string): string {
  if (typeof key === "string" && idempotencyKeyPattern.test(key)) return key;
  throw new ApiError("An idempotency key must be 1 to 255 visible ASCII characters", { code: "INVALID_OPTION" });
}
