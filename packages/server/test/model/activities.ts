/** The one activity of random programs: every attempt of it is blocked until a step says how it ends. */
import { activity, NonRetryableError } from "@wovyr/sdk";

export type Ending = "done" | "failed" | "failed for good";

type Attempt = { readonly name: string; readonly resolve: (value: string) => void; readonly reject: (error: Error) => void };

/** By idempotency key; of those that were blocked before a crash nobody hears. */
const blocked = new Map<string, Attempt>();

export const work = activity("work", (name: string, ctx) => {
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
