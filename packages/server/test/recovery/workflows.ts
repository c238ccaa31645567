/** The workflows of the recovery tests. Every activity records that it ran; what each workflow returns is known beforehand. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  type ActivityContext,
  type AnyWorkflow,
  activity,
  all,
  awaitEvent,
  child,
  event,
  settled,
  sleep,
  step,
  Type,
  workflow,
} from "@wovyr/sdk";
import { passGate } from "./gate.ts";
import { record } from "./record.ts";

const directory = () => process.env.WOVYR_TEST_RECORD ?? "";

/** Whether the code that never yields has been mended, as a deployment would; it is where nothing is recorded. */
const mended = () => directory() === "" || existsSync(join(directory(), "mended"));

function note(ctx: ActivityContext, name: string, text = ""): void {
  if (directory() !== "") record(directory(), { key: ctx.idempotencyKey, name, attempt: ctx.attempt, note: text });
}

const double = activity("double", async (n: number, ctx) => {
  note(ctx, "double");
  await pause((n * 7) % 15);
  return n * 2;
});

const flaky = activity("flaky", { retry: { maxAttempts: 4, initialDelay: 5, jitter: "none" } }, async (n: number, ctx) => {
  note(ctx, "flaky");
  await pause(n % 5);
  if (ctx.attempt < 2) throw new Error("not at the first try");
  return n + 1;
});

export const chain = workflow("chain", async function* (n: number) {
  let value = n;
  for (let index = 0; index < 4; index += 1) value = yield* double(value);
  return value;
});

export const fan = workflow("fan", async function* (n: number) {
  const values = yield* all([0, 1, 2, 3, 4].map((index) => double(n + index)));
  return values.reduce((sum, value) => sum + value, 0);
});

export const napper = workflow("napper", async function* (n: number) {
  const first = yield* double(n);
  yield* sleep(20 + (n % 40));
  const second = yield* flaky(first);
  yield* sleep(10);
  return yield* double(second);
});

export const family = workflow("family", async function* (n: number) {
  const [a, b] = yield* all([child(chain, n), child(fan, n)]);
  return a + b;
});

/** What each of them returns. */
export const mixed = [
  { workflow: chain, expected: (n: number) => n * 16 },
  { workflow: fan, expected: (n: number) => 10 * n + 20 },
  { workflow: napper, expected: (n: number) => (n * 2 + 1) * 2 },
  { workflow: family, expected: (n: number) => n * 16 + 10 * n + 20 },
] as const;

const gated = activity("gated", async (gate: string, ctx) => {
  note(ctx, "gated", gate);
  await passGate(directory(), gate, ctx.signal);
  return gate;
});

/** Runs an activity that waits for a gate. */
export const gatekeeper = workflow("gatekeeper", async function* (gate: string) {
  return yield* gated(gate);
});

/** Like `gatekeeper`, but its activity takes no notice of being asked to stop. */
const stubborn = activity("stubborn", async (gate: string, ctx) => {
  note(ctx, "stubborn", gate);
  await passGate(directory(), gate, new AbortController().signal);
  return gate;
});
export const stubbornKeeper = workflow("stubborn-keeper", async function* (gate: string) {
  return yield* stubborn(gate);
});

const finished = activity("finished", async (text: string, ctx) => {
  note(ctx, "finished", text);
});

/** Sleeps, and tells when it awoke by its own clock. */
export const sleeper = workflow("sleeper", async function* (milliseconds: number, ctx) {
  yield* sleep(milliseconds);
  const awake = ctx.now().getTime();
  yield* finished(ctx.id);
  return awake;
});

/** Sleeps and returns, without an activity. */
export const timer = workflow("timer", async function* (milliseconds: number) {
  yield* sleep(milliseconds);
  return "awake";
});

export const Go = event("go", Type.Object({ text: Type.String() }));

export const listener = workflow("listener", async function* () {
  const { text } = yield* awaitEvent(Go);
  yield* step("heard", async (ctx) => note(ctx, "heard", text));
  return text;
});

const killer = activity("killer", async (_: number, ctx) => {
  note(ctx, "killer");
  process.kill(process.pid, "SIGKILL");
  await new Promise(() => {});
});

/** Its activity ends the process, every time. */
export const assassin = workflow("assassin", async function* () {
  yield* killer(0);
});

const slow = activity("slow", async (milliseconds: number, ctx) => {
  note(ctx, "slow");
  await pause(milliseconds);
  return milliseconds;
});
export const bystander = workflow("bystander", async function* (milliseconds: number) {
  return yield* slow(milliseconds);
});

/** Loops for ever in its first turn, when it is told to. */
export const spinner = workflow("spinner", async function* (spin: boolean) {
  while (spin && !mended()) {
    // never yields
  }
  return yield* double(1);
});

/** Loops for ever in its second turn. */
export const lateSpinner = workflow("late-spinner", async function* (n: number) {
  const value = yield* double(n);
  for (;;) if (mended()) return value;
});

/** Its three activities end in one and the same turn. */
const instant = activity("instant", { retry: { maxAttempts: 2, initialDelay: 1, jitter: "none" } }, (text: string) => text);
export const trio = workflow("trio", async function* (texts: readonly string[]) {
  const ends = yield* settled(texts.map((text) => instant(text.split("").reverse().join(""))));
  return ends.map((end) => (end.status === "fulfilled" ? end.value : "failed"));
});

/** Waits with a hundred kilobytes in its variables, of which its history knows nothing. */
export const hoarder = workflow("hoarder", async function* (n: number) {
  const hoard = Array.from({ length: 12_800 }, (_, index) => index * n);
  const { text } = yield* awaitEvent(Go);
  return `${text} ${hoard.length}`;
});

/** Fails for good. */
export const failing = workflow("failing", async function* () {
  throw new Error("it always fails");
});

export const workflows: readonly AnyWorkflow[] = [
  chain,
  fan,
  napper,
  family,
  gatekeeper,
  stubbornKeeper,
  sleeper,
  timer,
  listener,
  assassin,
  bystander,
  spinner,
  lateSpinner,
  failing,
  trio,
  hoarder,
];
