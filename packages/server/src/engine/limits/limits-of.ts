/**
 * The limits that an attempt has to pass, in order.
 *
 * 1. Permits come before tokens, for a token is gone when it is taken; and what is narrower comes first, so that nobody holds what is for many while it
 *    waits for what is for few.
 * 2. A name tells two limits apart. No name of a definition holds a space.
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
export function limitsOfAttempt(attempt: Attempt, tenantLimits: TenantLimits | undefined): readonly Limit[] {
  const { tenant } = attempt;
  const { concurrency, rateLimit } = attempt.call.definition;
  const limits: Limit[] = [];
  if (concurrency !== undefined) {
    const { limit: capacity, onLimit, scope, key } = concurrency;
    const named = nameOf(attempt, "concurrency", scope, key);
    limits.push({ kind: "concurrency", tenant, ...named, capacity, onLimit });
  }
  if (tenantLimits?.concurrency !== undefined)
    limits.push({ kind: "concurrency", tenant, name: "tenant", of: tenant, capacity: tenantLimits.concurrency, onLimit: "queue" });
  if (rateLimit !== undefined) {
    const { limit, per, scope, key } = rateLimit;
    const named = nameOf(attempt, "rateLimit", scope, key);
    limits.push({ kind: "rateLimit", tenant, ...named, name: `${named.name} ${per}`, limit, per });
  }
  if (tenantLimits?.rateLimit !== undefined) {
    const { limit, per } = tenantLimits.rateLimit;
    limits.push({ kind: "rateLimit", tenant, name: `tenant ${per}`, of: tenant, limit, per });
  }
  return limits;
}

function nameOf(
  { call, activity }: Attempt,
  what: Limit["kind"],
  scope: string | undefined,
  key: ((input: never) => string) | undefined,
): Pick<Named, "name" | "of" | "key"> {
  const { name } = call.definition;
  const of = scope ?? name;
  const place = scope === undefined ? `activity ${name}` : `scope ${scope}`;
  if (key === undefined) return { name: place, of };
  const made = keyOf(key, decodePayload(activity.input), `${what}.key of activity "${name}"`);
  return { name: `${place} ${made}`, of, key: made };
}
