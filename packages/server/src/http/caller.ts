/**
 * Whom a request speaks for, and whether another node of the cluster has sent it on. The one place that decides it: no route takes a tenant from anywhere else.
 *
 * 1. Who proves that it knows the cluster's secret is a node: it says for which tenant it asks.
 * 2. Where no secret is set, only processes of this machine may be nodes, and only for the tenant that everybody is.
 * 3. A request that a node has sent to another one than this is refused. Whatever this node answers to others, a refusal included, says and proves who it is.
 */
import { ApiError, checkName, headerNames } from "@wovyr/sdk/internal";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bodyDigest, callKinds, isSameProof, type ProvedCall, proofOfAnswer, proofOfCall } from "./call-proof.ts";

export type Caller = { readonly tenant: string; readonly kind: "client" | keyof typeof callKinds };

/** How a node is known to the others of its cluster. */
export type NodeIdentity = { readonly node: string; readonly secret: string | undefined };

const usualTenant = "default";
/** Who asks for nobody in particular. */
const anybody: Caller = { tenant: usualTenant, kind: "client" };
const loopback = /^(127\.|::1$|::ffff:127\.)/;
const longestNonce = 64;

type Known = { readonly caller: Caller; readonly digest: string | undefined };
const known = new WeakMap<FastifyRequest, Known>();

/** Of a request that came through a scope which knows its callers. */
export const callerOf = (request: FastifyRequest): Caller => known.get(request)?.caller ?? anybody;

/** Every request of the scope is looked at before anything else, and refused with CLUSTER_SECRET_REFUSED or WRONG_NODE where it claims what is not so. */
export function knowCallers(app: FastifyInstance, identity: NodeIdentity): void {
  const { prefix } = app;
  app.addHook("onRequest", (request, reply, done) => {
    if (request.headers[headerNames.forwarded] !== undefined)
      try {
        known.set(request, nodeThatAsks(request, reply, identity, prefix));
      } catch (error) {
        done(error as Error);
        return;
      }
    done();
  });
  app.addHook("preHandler", (request, _reply, done) => {
    const { digest } = known.get(request) ?? {};
    const { body } = request;
    const isOther = digest !== undefined && (body == null || Buffer.isBuffer(body)) && bodyDigest(body ?? undefined) !== digest;
    done(isOther ? refused("The body of a request from another node is not the one that it sent.") : undefined);
  });
}

function nodeThatAsks(request: FastifyRequest, reply: FastifyReply, { node, secret }: NodeIdentity, prefix: string): Known {
  const { headers, socket, method, url } = request;
  const nonce = textOf(headers[headerNames.nonce]);
  reply.header(headerNames.node, node);
  if (secret !== undefined && nonce !== "" && nonce.length <= longestNonce)
    reply.header(headerNames.proof, proofOfAnswer(secret, { node, nonce }));
  const target = textOf(headers[headerNames.node]);
  const tenant = checkName(headers[headerNames.tenant], "the tenant of a request from another node");
  const call: ProvedCall = {
    node: target,
    nonce,
    kind: textOf(headers[headerNames.forwarded]),
    tenant,
    method,
    path: url.slice(prefix.length),
    idempotencyKey: textOf(headers[headerNames.idempotencyKey]),
    digest: textOf(headers[headerNames.bodyDigest]),
  };
  if (secret === undefined) checkNeighbour(headers[headerNames.proof] !== undefined, socket, tenant);
  else if (nonce === "" || !isSameProof(headers[headerNames.proof], proofOfCall(secret, call)))
    throw refused("The cluster secret of the node that asks is not this one's: set the same `cluster.secret` on all nodes.");
  if (target !== node)
    throw new ApiError(`This is node ${node}, and the request is for ${target === "" ? "no node by name" : target}.`, {
      code: "WRONG_NODE",
    });
  return {
    caller: { tenant, kind: call.kind === callKinds.delegated ? "delegated" : "forwarded" },
    digest: secret === undefined ? undefined : call.digest,
  };
}

type Ends = { readonly remoteAddress?: string | undefined; readonly localAddress?: string | undefined };

/** Without a secret. An address of this machine that is at both ends is nobody else's. */
function checkNeighbour(proves: boolean, { remoteAddress = "", localAddress }: Ends, tenant: string): void {
  if (proves) throw refused("The node that asks has a cluster secret, and this one has none: set the same `cluster.secret` on all nodes.");
  if (!loopback.test(remoteAddress) && remoteAddress !== localAddress)
    throw refused("This node takes requests of other nodes from its own machine only: set the same `cluster.secret` on all nodes.");
  if (tenant !== usualTenant)
    throw refused(`Without a \`cluster.secret\` nodes ask each other for the tenant "${usualTenant}" only: set the same one on all nodes.`);
}

const refused = (message: string): ApiError => new ApiError(message, { code: "CLUSTER_SECRET_REFUSED" });

const textOf = (header: string | string[] | undefined): string => (typeof header === "string" ? header : "");
