/** What each tenant may do, over all its activities. */
import { checkOptions, type RateLimitOptions, resolveRateLimit, wholeNumber } from "@wovyr/sdk/internal";
import type { TenantLimits } from "./limits-of.ts";

export type TenantLimitOptions = {
  /** Attempts of activities that run at once. */
  readonly concurrency?: number | undefined;
  /** Attempts of activities that begin within a time. */
  readonly rateLimit?: Pick<RateLimitOptions, "limit" | "per"> | undefined;
};

/** Throws INVALID_OPTION or INVALID_DURATION. */
export function resolveTenantLimits(options: TenantLimitOptions): TenantLimits {
  checkOptions(options, ["concurrency", "rateLimit"], "tenantLimits");
  const { concurrency, rateLimit } = options;
  if (rateLimit !== undefined) checkOptions(rateLimit, ["limit", "per"], "tenantLimits.rateLimit");
  return Object.freeze({
    ...(concurrency !== undefined && { concurrency: wholeNumber(concurrency, 1, "tenantLimits.concurrency") }),
    ...(rateLimit !== undefined && { rateLimit: resolveRateLimit(rateLimit, "tenantLimits.rateLimit") }),
  });
}
