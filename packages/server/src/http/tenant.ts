import type { FastifyRequest } from "fastify";

/** The tenant that a request speaks for. The one place that decides it: no route takes a tenant from anywhere else. */
export function tenantOf(_request: FastifyRequest): string {
  return "default";
}
