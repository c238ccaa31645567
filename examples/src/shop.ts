/**
 * The outside world of the order example: warehouse, reviewer, carrier. It always says yes, and tells who listens, so that tests and the demo can see
 * what really happened, slow it down, or let it fail.
 */
import type { ActivityContext } from "@wovyr/sdk";

export type Deed = {
  readonly what: string;
  readonly order: string;
  readonly attempt: number;
  /** The same on every attempt: a real service would do the deed once per key. */
  readonly key: string;
};

type Listener = (deed: Deed) => void | Promise<void>;

let listener: Listener = () => {};

export function onDeed(listen: Listener): void {
  listener = listen;
}

export async function act(what: string, order: string, ctx: ActivityContext): Promise<void> {
  await listener({ what, order, attempt: ctx.attempt, key: ctx.idempotencyKey });
}
