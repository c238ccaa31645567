import { ApiError, type Route, routes } from "@wovyr/sdk/internal";
import type { FastifyReply, FastifyRequest } from "fastify";

const table: readonly {
  readonly method: string;
  readonly segments: readonly string[];
}[] = Object.values(routes).map((route: Route) => ({
  method: route.method,
  segments: route.path.split("/"),
}));

/** The error for a request that no route takes: METHOD_NOT_ALLOWED (and sets `Allow`) where another method would do, else ROUTE_NOT_FOUND. */
export function notFound(request: FastifyRequest, reply: FastifyReply, prefix: string): ApiError {
  const path = request.url.split("?", 1)[0] ?? "";
  const methods = methodsOf(path.slice(prefix.length));
  if (methods.length === 0)
    return new ApiError(`There is no ${shown(path)}`, {
      code: "ROUTE_NOT_FOUND",
    });
  reply.header("allow", methods.join(", "));
  return new ApiError(`${shown(path)} does not take ${request.method}, only ${methods.join(" and ")}`, { code: "METHOD_NOT_ALLOWED" });
}

function methodsOf(path: string): string[] {
  const segments = path.split("/");
  const fits = table.filter(
    (row) =>
      row.segments.length === segments.length &&
      row.segments.every((segment, index) => segment.startsWith("{") || segment === segments[index]),
  );
  return [...new Set(fits.map((row) => row.method))];
}

function shown(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 200)}…`;
}
