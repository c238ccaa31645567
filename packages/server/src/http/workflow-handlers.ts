import type { WorkflowInfo } from "@wovyr/sdk/internal";
import type { Handlers } from "./handler.ts";

export const workflowHandlers: Pick<Handlers, "listWorkflows" | "getWorkflow"> = {
  async listWorkflows({ operations }) {
    return {
      status: 200,
      value: { items: (await operations.listWorkflows()).map(shown) },
    };
  },

  async getWorkflow({ operations, names }) {
    return {
      status: 200,
      value: shown(await operations.getWorkflow(names.name)),
    };
  },
};

/** Schemas as JSON: what a schema library keeps in them beside (symbols, functions) is not for the wire. */
function shown<T extends WorkflowInfo>(info: T): object {
  return { ...info, input: plain(info.input), output: plain(info.output) };
}

function plain(schema: object | null): unknown {
  return JSON.parse(JSON.stringify(schema));
}
