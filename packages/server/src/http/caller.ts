/**
 * Whom a request speaks for, and whether another node of the cluster has sent it on. The one place that decides it: no route takes a tenant from anywhere else.
 *
 * 1. Who shows the cluster's secret is a node: it says for which tenant it asks.
 * 2. Where no secret is set, only processes of this machine may be nodes, and only for the tenant that everybody is.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError, checkName, headerNames } from "@wovyr/sdk/internal";
import type { FastifyRequest } from "fastify";

export type Caller = { readonly tenant: string; readonly forwarded: boolean };

const usualTenant = "default";
/** Who asks for nobody in particular. */
export const anybody: Caller = { tenant: usualTenant, forwarded: false };
const loopback = /^(127\.|::1$|::ffff:127\.)/;

/** Throws CLUSTER_SECRET_REFUSED. */
export function callerOf({ headers, socket }: FastifyRequest, secret: string | undefined): Caller {
  if (headers[headerNames.forwarded] === undefined) return anybody;
  const tenant = checkName(headers[headerNames.tenant], "the tenant of a request from another node");
  const given = headers[headerNames.clusterSecret];
  const isNode =
    secret === undefined
      ? loopback.test(socket.remoteAddress ?? "") && tenant === usualTenant
      : typeof given === "string" && isSame(given, secret);
  if (isNode) return { tenant, forwarded: true };
  throw new ApiError(
    secret === undefined
      ? "This node takes requests of other nodes from its own machine only: set the same `cluster.secret` on all nodes."
      : "The cluster secret of the node that asks is not this one's: set the same `cluster.secret` on all nodes.",
    { code: "CLUSTER_SECRET_REFUSED" },
  );
}

/** Takes the same time whatever differs. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
