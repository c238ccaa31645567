import { isClosingEvent } from "@wovyr/sdk/internal";
import type { TestEnvironment } from "@wovyr/testing";

/** Numbers of the last events of the turns after which a run was open, in order. */
export async function bordersOf(env: TestEnvironment, id: string, runId?: string): Promise<number[]> {
  const open = (await env.turns(id, runId)).filter(({ events }) => !events.some(({ type }) => isClosingEvent(type)));
  return open.map(({ seq, events }) => seq + events.length - 1);
}
