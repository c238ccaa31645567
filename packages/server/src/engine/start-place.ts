/** Which instance a start is about, before it is made: its owner is asked. */
import { encodePayload, keyOf, parse, type StartRequest, singletonId, type WorkflowDefinition } from "@wovyr/sdk/internal";
import { pendingKey } from "./debouncing.ts";
import type { Engine } from "./engine.ts";

/** Undefined when any will do, and for what is wrong with the start: whoever makes it says so. */
export function startPlace(engine: Engine, tenant: string, request: StartRequest): string | undefined | Promise<string | undefined> {
  if (request.id !== undefined) return request.id;
  const { registry } = engine.options;
  const definition = registry.names.includes(request.workflow) ? newest(engine, request) : undefined;
  if (definition?.singleton === undefined && definition?.debounce === undefined) return undefined;
  try {
    const input = parse(definition.input, request.input, `input of workflow "${definition.name}"`);
    if (definition.debounce !== undefined) return pendingStart(engine, tenant, definition, input);
    const key = definition.singleton?.key && keyOf(definition.singleton.key, input, "singleton.key");
    return singletonId(definition.name, key);
  } catch {
    return undefined;
  }
}

function newest({ options: { registry } }: Engine, { workflow, version }: StartRequest): WorkflowDefinition | undefined {
  return version === undefined ? registry.forStart(workflow, undefined) : registry.find(workflow, version);
}

/** The instance whose start is still to be entered. */
async function pendingStart(engine: Engine, tenant: string, definition: WorkflowDefinition, input: unknown): Promise<string | undefined> {
  const { store, limits } = engine.options;
  const payload = encodePayload(input, { limit: limits.execution.payload, what: "input" });
  const known = await store.findStartKey(tenant, definition.name, pendingKey(definition, payload));
  return known && (await store.getInstance({ tenant, run: known.run }))?.id;
}
