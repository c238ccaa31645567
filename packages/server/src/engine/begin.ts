import type { Status } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { type Start, StartRefused } from "./start.ts";

/** Begins a run as it is described; resolves with its status when that is durable, with undefined when its id or its key is taken. */
export async function begin(engine: Engine, start: Start): Promise<Status | undefined> {
  try {
    await new Promise<void>((resolve, refused) => engine.startInstance(start, { accepted: () => resolve(), refused }));
    return engine.table.get(start.identity.run)?.state.status ?? "Running";
  } catch (error) {
    if (error instanceof StartRefused) return undefined;
    throw error;
  }
}
