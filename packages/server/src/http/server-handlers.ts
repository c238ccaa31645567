import { type Operations, WovyrError } from "@wovyr/sdk/internal";
import type { Handlers } from "./handler.ts";

/** Operations of the server itself; `document` gives the OpenAPI document. */
export function serverHandlers(
  document: () => object,
  closing: () => boolean,
): Pick<Handlers, "live" | "ready" | "openapi" | "getCluster"> {
  return {
    async live() {
      return { status: 200, value: { status: "live" } };
    },

    async ready({ operations }) {
      const health = closing() ? { ready: false, reason: "shutting down" } : await healthOf(operations);
      return { status: health.ready ? 200 : 503, value: health };
    },

    async getCluster({ operations }) {
      return { status: 200, value: await operations.cluster() };
    },

    async openapi() {
      return { status: 200, value: document() };
    },
  };
}

/** An orchestrator that cannot even say how it is, is not ready. */
async function healthOf(operations: Operations): Promise<{ ready: boolean; reason?: string }> {
  try {
    return await operations.health();
  } catch (error) {
    return { ready: false, reason: error instanceof WovyrError ? error.message : "the orchestrator does not answer" };
  }
}
