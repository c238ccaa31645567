/**
 * What a workflow yields.
 *
 * 1. An effect is an immutable description; nothing happens until it is yielded, and it may be yielded more than once.
 * 2. An effect is never a thenable: an async generator awaits what it yields.
 * 3. Its async iterator yields the effect itself once and returns what it is resumed with: that is how `yield*` gets its type.
 */

import { AuthoringError } from "../model/errors.ts";
import { described, effectHint, effectText } from "../model/unrun-effect.ts";
import { lineOf } from "../runtime/call-site.ts";

declare const result: unique symbol;

/** Where an effect was created, and what became of it. An effect that is derived from another (`.with`) shares it. */
export type CallSite = {
  /** Read only when a message needs it. */
  stack?: string;
  /** It was yielded, or is part of one that was. */
  used?: boolean;
  /** It was awaited, or returned by an async function. */
  awaited?: boolean;
};

export abstract class Effect<out T> {
  declare readonly [result]: T;
  abstract readonly kind: string;
  /** The stack at creation: its top is the line that made the effect. */
  readonly site: CallSite;

  constructor(site: CallSite = captureSite(new.target)) {
    this.site = site;
    made?.push(this);
  }

  /** How messages call it: what it is, where it was made, and what to write instead. */
  [described](): { readonly what: string; readonly at: string | undefined; readonly write: string } {
    return { what: effectText(this), at: lineOf(this.site), write: effectHint(this) };
  }

  /** Compared, calculated with or put into a text: never what was meant, in a workflow. */
  [Symbol.toPrimitive](): string {
    const { what, at, write } = this[described]();
    if (made === undefined) return `[${what}]`;
    throw new AuthoringError(
      `${what}${at === undefined ? "" : `, made at ${at},`} was used as a value, but nothing of it has run. Write \`${write}\` to get its result.`,
      "EFFECT_NOT_YIELDED",
    );
  }

  // Symbol.asyncIterator and not Symbol.iterator: `const [a] = all(…)` or `for (… of effect)` must not compile without their `yield*`.
  [Symbol.asyncIterator](): AsyncGenerator<Effect<unknown>, T, unknown> {
    return new YieldOnce<T>(this);
  }
}

// What awaits an effect reads `then`: it finds none, and is remembered. Not in the type: an effect is no thenable.
// biome-ignore lint/suspicious/noThenProperty: it gives undefined, and so makes no thenable.
Object.defineProperty(Effect.prototype, "then", {
  configurable: true,
  get(this: Effect<unknown>): undefined {
    if (made !== undefined && this.site !== unknownSite) this.site.awaited = true;
    return undefined;
  },
});

/** The caller's frame is the user's line. */
const siteDepth = 1;

const unknownSite: CallSite = Object.freeze({});
let remembering = true;
let made: Effect<unknown>[] | undefined;

/** From now on every effect that is made is added to this list: while workflow code runs. Returns the list that was before. */
export function collectEffects(into: Effect<unknown>[] | undefined): Effect<unknown>[] | undefined {
  const before = made;
  made = into;
  return before;
}

/** The effect was yielded, or is part of one that was. */
export function markUsed(effect: Effect<unknown>): void {
  if (effect.site !== unknownSite) effect.site.used = true;
}

/** Whether effects remember the lines that made them; that is most of the cost of making one, about 2 µs. For the whole process. */
export function rememberSites(on: boolean): void {
  remembering = on;
}

export const sitesAreRemembered = (): boolean => remembering;

/** Captures the stack from the caller of `above` on. */
export function captureSite(above: ((...args: never[]) => unknown) | (abstract new (...args: never[]) => unknown)): CallSite {
  // Its own object even then: it is what tells the effects of a fiber apart.
  if (!remembering) return made === undefined ? unknownSite : { used: false };
  const site: CallSite = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = siteDepth;
  Error.captureStackTrace(site, above);
  Error.stackTraceLimit = limit;
  return site;
}

class YieldOnce<T> implements AsyncGenerator<Effect<unknown>, T, unknown> {
  #effect: Effect<T> | undefined;
  constructor(effect: Effect<T>) {
    this.#effect = effect;
  }
  // Plain objects instead of promises would do for `yield*`, but the interface asks for promises, and other callers may rely on them.
  next(value?: unknown): Promise<IteratorResult<Effect<unknown>, T>> {
    const effect = this.#effect;
    if (effect === undefined) return Promise.resolve({ done: true, value: value as T });
    this.#effect = undefined;
    return Promise.resolve({ done: false, value: effect });
  }
  return(value: T | PromiseLike<T>): Promise<IteratorResult<Effect<unknown>, T>> {
    this.#effect = undefined;
    return Promise.resolve(value).then((done) => ({ done: true, value: done }));
  }
  throw(error: unknown): Promise<IteratorResult<Effect<unknown>, T>> {
    this.#effect = undefined;
    return Promise.reject(error);
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#effect = undefined;
  }
}

/** What an `async function*` of effects returns; written out only on recursive functions. */
export type Flow<T> = AsyncGenerator<Effect<unknown>, T, unknown>;

// biome-ignore lint/suspicious/noExplicitAny: a generator's next-type is contravariant; any generator of effects is a branch.
type Running<T> = Effect<T> | AsyncGenerator<Effect<unknown>, T, any>;

/** An effect, a generator, or a function that returns one. */
export type Branch<T = unknown> = Running<T> | (() => Running<T>);

export type ResultOf<B> =
  B extends Effect<infer T>
    ? T
    : // biome-ignore lint/suspicious/noExplicitAny: a generator's next-type is contravariant; only its result matters here.
      B extends AsyncGenerator<any, infer T, any>
      ? T
      : B extends () => infer R
        ? ResultOf<R>
        : never;

export type Branches = readonly Branch[] | { readonly [name: string]: Branch };
export type Results<B> = { -readonly [K in keyof B]: ResultOf<B[K]> };
export type Winner<B> = B extends readonly unknown[]
  ? number extends B["length"]
    ? { winner: number; value: ResultOf<B[number]> }
    : {
        [K in keyof B]: K extends `${infer N extends number}` ? { winner: N; value: ResultOf<B[K]> } : never;
      }[number]
  : { [K in keyof B & string]: { winner: K; value: ResultOf<B[K]> } }[keyof B & string];
export type Settled<T> = { status: "fulfilled"; value: T } | { status: "rejected"; reason: Error };
