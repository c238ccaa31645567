import { ApiError } from "../model/errors.ts";
import { idempotencyKeyPattern } from "../protocol/media.ts";

/** The key itself; throws INVALID_OPTION for one that no header could carry, in process as over HTTP. */
export function checkedKey(key: string): string {
  if (idempotencyKeyPattern.test(key)) return key;
  throw new ApiError("An idempotency key must be 1 to 255 visible ASCII characters", { code: "INVALID_OPTION" });
}
