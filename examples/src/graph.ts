/** Pictures: what a workflow may do, before anything ran, and what one of its runs did and is at. Any viewer of Mermaid shows them. */
import { activity, all, awaitEvent, event, race, sleep, workflow } from "@wovyr/sdk";
import { type Handle, toMermaid } from "@wovyr/sdk/client";
import { staticGraph } from "@wovyr/server";

export const PickedUp = event("picked-up");

const printLabel = activity("print-label", async (parcel: string) => `label-of-${parcel}`);

const orderPickup = activity("order-pickup", { retry: { maxAttempts: 3, initialDelay: "1 minute" } }, async (_parcel: string) => {});

const complain = activity("complain", async (_parcel: string) => {});

export const delivery = workflow("delivery", async function* (parcel: string) {
  const [label] = yield* all([printLabel(parcel), orderPickup(parcel)]);
  const { winner } = yield* race({ done: awaitEvent(PickedUp), late: sleep("2 days") });
  if (winner === "late") yield* complain(parcel);
  return label;
});

/** What a delivery may do, read from its source. */
export function plan(): string {
  return toMermaid(staticGraph(delivery), { direction: "LR" });
}

/** What a delivery did so far. */
export async function progress(run: Handle<unknown>): Promise<string> {
  return toMermaid(await run.graph());
}

/** What it waits for, in words. */
export async function waitingFor(run: Handle<unknown>): Promise<string[]> {
  const { nodes } = await run.graph();
  return nodes
    .filter(({ kind, endedAt }) => kind !== "branches" && endedAt === undefined)
    .map(({ kind, name, state }) => `${kind} ${name}: ${state}`);
}
