/**
 * Calls to other nodes, watched while they are under way.
 *
 * 1. A call ends as soon as its node is known to own the run no more, whatever that one does.
 * 2. What a node answers, or that it does not, tells of the node as well (placement.ts).
 * 3. A node that waits before it answers, and lets that time pass, is not waited for much longer.
 * 4. So many are under way at once, and no more.
 */
import { ApiError } from "@wovyr/sdk";
import { longestWait, type Operations, type StreamItem } from "@wovyr/sdk/internal";
import type { Departure } from "./departure.ts";
import type { Engine } from "./engine.ts";
import type { Member } from "./members.ts";
import { ownerUnreachable } from "./ownership-errors.ts";
import type { Peers } from "./ports/peers.ts";

/** Calls to other nodes that are under way at once. */
export const maxForwarded = 5_000;
/** How much longer than it was asked to a node may wait until it answers, in milliseconds: callers are told something within less than `grace` (answering.ts). */
const overdue = 1_000;

export class PeerCalls {
  readonly #tenant: string;

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** Rejects with UNREACHABLE as soon as `left` says that the node owns the run no more. */
  async make<T>(
    engine: Engine,
    member: Member,
    left: Departure,
    call: (owner: Operations, signal: AbortSignal) => Promise<T>,
    outside?: AbortSignal,
  ): Promise<T> {
    const owner = peersOf(engine, member).operations(this.#tenant, member);
    return watched(engine, member, left, (signal) => call(owner, signal), outside);
  }

  /** A call that is to wait for `most` milliseconds at most before it is answered; a node that did not answer before is not to wait. Rejects with UNREACHABLE when it is overdue. */
  async waiting<T>(
    engine: Engine,
    member: Member,
    left: Departure,
    most: number,
    call: (owner: Operations, wait: number, signal: AbortSignal) => Promise<T>,
    outside?: AbortSignal,
  ): Promise<T> {
    const { clock } = engine.options;
    const wait = engine.placement.isSilent(member) ? 0 : Math.min(most, longestWait);
    const over = new AbortController();
    const cancel = clock.wakeAt(clock.now() + wait + overdue, () => over.abort(noAnswerInTime(member)));
    const signal = outside === undefined ? over.signal : AbortSignal.any([outside, over.signal]);
    try {
      return await this.make(engine, member, left, (owner, ending) => call(owner, wait, ending), signal);
    } finally {
      cancel();
    }
  }

  /** Asks a node to do in this one's place what this one cannot. */
  async instead<T>(
    engine: Engine,
    member: Member,
    call: (delegate: Pick<Operations, "start">) => Promise<T>,
    outside?: AbortSignal,
  ): Promise<T> {
    const delegate = peersOf(engine, member).delegated(this.#tenant, member);
    return watched(engine, member, engine.placement.departure(member), () => call(delegate), outside);
  }

  /** Ends when the run has, and throws when the node from which it comes owns it no more. */
  async *follow(
    engine: Engine,
    member: Member,
    left: Departure,
    id: string,
    options: NonNullable<Parameters<Operations["stream"]>[1]>,
  ): AsyncGenerator<StreamItem> {
    const owner = peersOf(engine, member).operations(this.#tenant, member);
    const ending = new AbortController();
    const end = () => ending.abort();
    options.signal?.addEventListener("abort", end, { once: true });
    const unlisten = left.listen(end);
    if (options.signal?.aborted === true) end();
    engine.placement.forwarding += 1;
    try {
      yield* owner.stream(id, { ...options, signal: ending.signal });
    } catch (error) {
      if (!ending.signal.aborted) engine.placement.unanswered(member, error);
      if (left.over) throw goneFrom(member);
      throw error;
    } finally {
      engine.placement.forwarding -= 1;
      options.signal?.removeEventListener("abort", end);
      unlisten();
      ending.abort();
    }
  }
}

async function watched<T>(
  engine: Engine,
  member: Member,
  left: Departure,
  call: (signal: AbortSignal) => Promise<T>,
  outside?: AbortSignal,
): Promise<T> {
  const ending = new AbortController();
  const stop = () => ending.abort(outside?.reason);
  outside?.addEventListener("abort", stop, { once: true });
  let moved = () => {};
  const moving = new Promise<never>((_resolve, reject) => {
    moved = () => {
      ending.abort();
      reject(goneFrom(member));
    };
  });
  const unlisten = left.listen(moved);
  engine.placement.forwarding += 1;
  try {
    if (outside?.aborted === true) stop();
    return await Promise.race([heard(engine, member, call(ending.signal)), moving]);
  } finally {
    engine.placement.forwarding -= 1;
    outside?.removeEventListener("abort", stop);
    unlisten();
  }
}

async function heard<T>(engine: Engine, member: Member, answer: Promise<T>): Promise<T> {
  try {
    const given = await answer;
    engine.placement.answered(member);
    return given;
  } catch (error) {
    engine.placement.unanswered(member, error);
    throw error;
  }
}

function peersOf(engine: Engine, { node }: Member): Peers {
  const { peers } = engine.options;
  if (peers === undefined) throw ownerUnreachable(`node ${node} owns it, and this one has no way to reach others`);
  if (engine.placement.forwarding >= maxForwarded)
    throw new ApiError(`${maxForwarded} calls to other nodes are under way already.`, { code: "OVERLOADED", retryAfter: 1_000 });
  return peers;
}

const goneFrom = ({ node }: Member): ApiError => new ApiError(`Node ${node} does not own the run any more.`, { code: "UNREACHABLE" });

function noAnswerInTime({ node }: Member): ApiError {
  const cause = new DOMException("no answer in time", "TimeoutError");
  return new ApiError(`Node ${node} does not answer in time.`, { code: "UNREACHABLE", cause });
}
