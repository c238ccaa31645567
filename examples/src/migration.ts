/** A long run that fails near its end because an activity is faulty: once that is mended, a fork goes on from the step that failed. */
import { activity, Type, workflow } from "@wovyr/sdk";

/** Moves accounts 1 to `count`, one after another, with `move` for each. */
export function migrationWith(move: (account: number) => Promise<number>) {
  const moveAccount = activity("move-account", { retry: { maxAttempts: 1 } }, move);
  return workflow("migration", { input: Type.Object({ count: Type.Number() }) }, async function* ({ count }) {
    let moved = 0;
    for (let account = 1; account <= count; account += 1) moved += yield* moveAccount(account);
    return moved;
  });
}

/** The mended one. */
export const migration = migrationWith(async () => 1);
