/**
 * Calls that are answered in bounded time, whatever becomes of the statements that they wait for.
 *
 * 1. A call is refused with STORE_UNAVAILABLE when it has had no answer for `patience`, one that waits for something when none has come `grace` after the end
 *    of its wait, or up to a second before that. One that changes something has `patience` in any case.
 * 2. Nothing is undone by that: what the call asked for may be done all the same, now or later. Asked again under the same idempotency key, it counts once.
 * 3. A poll that was refused takes no task any more.
 * 4. What is sent or received in parts is bounded from part to part; a stream of events is followed for as long as its run lasts.
 */
import { ApiError, type Operations } from "@wovyr/sdk/internal";
import { Deadlines } from "./deadlines.ts";
import type { Clock } from "./ports/clock.ts";

/** Milliseconds. */
export const patience = 15_000;
export const grace = 5_000;

/** Of what any operation is given, what says how long it may wait. */
type Call = (...args: unknown[]) => unknown;
type Poll = Parameters<Operations["pollTasks"]>[0];

/** Where each operation that waits is told for how long, and whether it only reads. */
const waits: Readonly<Record<string, { readonly at: number; readonly reads: boolean }>> = {
  start: { at: 0, reads: false },
  update: { at: 3, reads: false },
  result: { at: 1, reads: true },
} satisfies { readonly [K in keyof Operations]?: unknown };

/** An update that says nothing waits so long. */
const longestSilence = { update: 30_000 } as Readonly<Record<string, number>>;

export function answering(operations: Operations, clock: Clock): Operations {
  const deadlines = new Deadlines(clock, silent);
  const bounded: Record<string, unknown> = { ...operations };
  for (const [name, call] of Object.entries(operations) as [string, Call][]) {
    if (name === "stream" || name === "pollTasks" || name === "export" || name === "import") continue;
    const waiting = waits[name];
    bounded[name] = (...args: unknown[]) => {
      const { wait = longestSilence[name] ?? 0 } = ((waiting && args[waiting.at]) ?? {}) as { readonly wait?: number };
      const most = waiting === undefined || wait === 0 ? patience : Math.max(wait + grace, waiting.reads ? 0 : patience);
      return deadlines.within(most, call(...args));
    };
  }
  return {
    ...(bounded as unknown as Operations),
    pollTasks: (poll) => polling(deadlines, poll, operations.pollTasks),
    export: (id, options) => inParts(deadlines, operations.export(id, options)),
    import: (lines) => taking(clock, lines, (taken) => operations.import(taken)),
  };
}

async function polling(
  deadlines: Deadlines,
  poll: Poll,
  call: Operations["pollTasks"],
): Promise<Awaited<ReturnType<Operations["pollTasks"]>>> {
  const over = new AbortController();
  const signal = poll.signal === undefined ? over.signal : AbortSignal.any([poll.signal, over.signal]);
  const { wait = 0 } = poll;
  try {
    return await deadlines.within(wait === 0 ? patience : wait + grace, call({ ...poll, signal }));
  } catch (error) {
    over.abort(error);
    throw error;
  }
}

async function* inParts<T>(deadlines: Deadlines, parts: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = parts[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const next = await deadlines.within(patience, iterator.next());
      ended = next.done === true;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // One that is silent is not waited for here either.
    if (!ended) void iterator.return?.().catch(() => {});
  }
}

/** What a call comes to that takes lines; while it waits for the next one, it is not its turn to answer. */
async function taking<T>(clock: Clock, lines: AsyncIterable<string>, call: (lines: AsyncIterable<string>) => Promise<T>): Promise<T> {
  let cancel = () => {};
  let fail = (_error: unknown) => {};
  const late = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  const begin = () => {
    cancel();
    cancel = clock.wakeAt(clock.now() + patience, () => fail(silent(patience)));
  };
  const watched = async function* () {
    const iterator = lines[Symbol.asyncIterator]();
    try {
      for (;;) {
        cancel();
        const next = await iterator.next();
        begin();
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  };
  begin();
  try {
    return await Promise.race([call(watched()), late]);
  } finally {
    cancel();
  }
}

const silent = (milliseconds: number) =>
  new ApiError(
    `The store has not answered for ${milliseconds / 1_000} s. Whether this was done is not known: ask again, with the same idempotency key if it changes something.`,
    { code: "STORE_UNAVAILABLE", retryAfter: 1_000 },
  );
