/**
 * The limits that an attempt has to pass, in order.
 *
 * 1. Permits come before tokens, for a token is gone when it is taken; and what is narrower comes first, so that nobody holds what is for many while it
 *    waits for what is for few.
 * 2. What has no scope of its own is a limit of its group of orchestrators: another group may have another activity of the same name.
 */
import { decodePayload, keyOf, type OnLimit, type RateLimit } from "@wovyr/sdk/internal";
import type { Attempt } from "../attempt.ts";

type Named = {
  readonly tenant: string;
  readonly name: string;
  /** Whose limit it is: the name of an activity or of a scope, or that of the tenant. */
  readonly of: string;
  readonly key?: string;
};

export type PermitLimit = Named & { readonly kind: "concurrency"; readonly capacity: number; readonly onLimit: OnLimit };
export type TokenLimit = Named & { readonly kind: "rateLimit"; readonly limit: number; readonly per: number };
export type Limit = PermitLimit | TokenLimit;

/** What each tenant may do, over all its activities. */
export type TenantLimits = {
  readonly concurrency?: number;
  readonly rateLimit?: Pick<RateLimit, "limit" | "per">;
};

export function isLimited({ call: { definition } }: Attempt, tenantLimits: TenantLimits | undefined): boolean {
  if (definition.builtIn !== undefined) return false;
  return tenantLimits !== undefined || definition.concurrency !== undefined || definition.rateLimit !== undefined;
}

/** Throws INVALID_OPTION when a key function does not do what it should. */
export function limitsOfAttempt(attempt: Attempt, group: string, tenantLimits: TenantLimits | undefined): readonly Limit[] {
  const { tenant } = attempt;
  const { concurrency, rateLimit } = attempt.call.definition;
  const ofTenant = { tenant, of: tenant };
  const limits: Limit[] = [];
  if (concurrency !== undefined) {
    const { limit: capacity, onLimit, scope, key } = concurrency;
    limits.push({ kind: "concurrency", tenant, ...named(attempt, group, "concurrency", scope, key), capacity, onLimit });
  }
  if (tenantLimits?.concurrency !== undefined)
    limits.push({ kind: "concurrency", ...ofTenant, name: nameOf("tenant", group), capacity: tenantLimits.concurrency, onLimit: "queue" });
  if (rateLimit !== undefined) {
    const { limit, per, scope, key } = rateLimit;
    limits.push({ kind: "rateLimit", tenant, ...named(attempt, group, "rateLimit", scope, key, per), limit, per });
  }
  if (tenantLimits?.rateLimit !== undefined) {
    const { limit, per } = tenantLimits.rateLimit;
    limits.push({ kind: "rateLimit", ...ofTenant, name: nameOf("tenant", group, per), limit, per });
  }
  return limits;
}

const nameOf = (...parts: readonly (string | number)[]): string => JSON.stringify(parts);

function named(
  { call, activity }: Attempt,
  group: string,
  what: Limit["kind"],
  scope: string | undefined,
  key: ((input: never) => string) | undefined,
  ...window: readonly number[]
): Pick<Named, "name" | "of" | "key"> {
  const { name } = call.definition;
  const of = scope ?? name;
  const place = scope === undefined ? ["activity", group, name] : ["scope", scope];
  if (key === undefined) return { name: nameOf(...place, ...window), of };
  const made = keyOf(key, decodePayload(activity.input), `${what}.key of activity "${name}"`);
  return { name: nameOf(...place, made, ...window), of, key: made };
}
