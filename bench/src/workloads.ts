/** What is run: workflows whose activities cost nothing, so that only the engine is measured. */
import { activity, all, sleep, workflow } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";

const next = activity("bench-next", async (n: number) => n + 1);

export const oneStep = workflow("bench-one-step", async function* (n: number) {
  return yield* next(n);
});

export const sequential = workflow("bench-sequential", async function* (steps: number) {
  let value = 0;
  while (value < steps) value = yield* next(value);
  return value;
});

export const fanOut = workflow("bench-fan-out", async function* (width: number) {
  const values = yield* all(Array.from({ length: width }, (_, n) => next(n)));
  return values.length;
});

const failures = 3;

/** Attempts of `stubborn`, all of them, in this process. */
export const attempts = { made: 0 };

const stubborn = activity("bench-stubborn", { retry: { backoff: "fixed", initialDelay: 1, jitter: "none" } }, async (n: number, ctx) => {
  attempts.made += 1;
  if (ctx.attempt <= failures) throw new Error("not yet");
  return n;
});

export const failing = workflow("bench-failing", async function* (width: number) {
  const values = yield* all(Array.from({ length: width }, (_, n) => stubborn(n)));
  return values.length;
});

export const nap = workflow("bench-nap", async function* (n: number) {
  yield* sleep("30 days");
  return n;
});

/** Attempts of `held`, in this process: how many have begun, and whether they ever end. */
export const holding = { begun: 0, endless: false };

const held = activity("bench-held", async (n: number) => {
  holding.begun += 1;
  if (holding.endless) await new Promise(() => {});
  return n;
});

export const holder = workflow("bench-holder", async function* (n: number) {
  return yield* held(n);
});

export const workflows = [oneStep, sequential, fanOut, failing, nap, holder];

export type Workload = {
  readonly name: string;
  readonly unit: string;
  /** What one call of `once` completes, in the row's unit. */
  readonly size: number;
  readonly once: (client: Client) => Promise<unknown>;
};

export const oneStepWorkload = (inFlight: number): Workload => ({
  name: `one-step workflows, ${inFlight.toLocaleString("en")} in flight`,
  unit: "workflows/s",
  size: 1,
  once: (client) => client.execute(oneStep, 1),
});

export const sequentialWorkload = (count: number, steps: number): Workload => ({
  name: `${count.toLocaleString("en")} workflows × ${steps} sequential steps`,
  unit: "steps/s",
  size: count * steps,
  once: (client) => many(count, () => client.execute(sequential, steps)),
});

export const fanOutWorkload = (count: number, width: number): Workload => ({
  name: `${count} workflows × fan-out of ${width} steps`,
  unit: "steps/s",
  size: count * width,
  once: (client) => many(count, () => client.execute(fanOut, width)),
});

export const failingWorkload = (count: number, width: number): Workload & { readonly attempts: number } => ({
  name: `${(count * width).toLocaleString("en")} activities that fail ${failures} times each`,
  unit: "attempts/s",
  size: count * width * (failures + 1),
  attempts: count * width * (failures + 1),
  once: (client) => many(count, () => client.execute(failing, width)),
});

function many(count: number, once: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, once));
}
