/** The one activity of random programs: every attempt of it is blocked until a step says how it ends, or ends by itself where nobody takes steps. */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { activity, NonRetryableError } from "@wovyr/sdk";

export type Ending = "done" | "failed" | "failed for good";

type Attempt = { readonly name: string; readonly resolve: (value: string) => void; readonly reject: (error: Error) => void };

/** By idempotency key; of those that were blocked before a crash nobody hears. */
const blocked = new Map<string, Attempt>();

/** Milliseconds of an attempt that ends by itself, at most. */
const longest = 30;
let endsByItself = false;

/** From now on attempts end by themselves, each in a way that follows from its name and number: four of five are done. */
export function letAttemptsEnd(): void {
  endsByItself = true;
}

async function byItself(name: string, attempt: number): Promise<string> {
  const hash = createHash("sha256").update(`${name} ${attempt}`).digest();
  await pause((hash[0] as number) % longest);
  const draw = (hash[1] as number) % 10;
  if (draw === 0) throw new NonRetryableError(`${name} failed`);
  if (draw === 1) throw new Error(`${name} failed`);
  return `${name} done`;
}

export const work = activity("work", (name: string, ctx) => {
  if (endsByItself) return byItself(name, ctx.attempt);
  return new Promise<string>((resolve, reject) => blocked.set(ctx.idempotencyKey, { name, resolve, reject }));
});

export const isBlocked = (run: string, effect: string): boolean => blocked.has(`${run}/${effect}`);

export function endAttempt(run: string, effect: string, ending: Ending): void {
  const key = `${run}/${effect}`;
  const attempt = blocked.get(key);
  if (attempt === undefined) throw new Error(`no attempt of ${key} is running`);
  blocked.delete(key);
  if (ending === "done") attempt.resolve(`${attempt.name} done`);
  else attempt.reject(new (ending === "failed" ? Error : NonRetryableError)(`${attempt.name} failed`));
}

/** Every process that ran attempts has died. */
export const forgetAttempts = (): void => blocked.clear();
