/** How the types of a call follow from schemas, or from the annotations of a function where there are none. */
import type { Effect } from "../effects/effect.ts";
import type { InputOf, MaybeSchema, OutputOf, Schema } from "./schema.ts";

export type Awaitable<T> = T | PromiseLike<T>;

/** An input that may be `undefined` may be left out of the call. */
// biome-ignore lint/suspicious/noConfusingVoidType: `void` is what makes an argument optional
export type Param<I> = undefined extends I ? I | void : I;

/** `(…, input, options?)`, where `input` may be left out when the definition takes none. */
// biome-ignore lint/suspicious/noConfusingVoidType: see Param
export type Args<I, Options> = [void] extends [I] ? [input?: NoInfer<I>, options?: Options] : [input: NoInfer<I>, options?: Options];

/** What the function gets: without a schema an unannotated parameter is `never`, an annotated one is taken. */
export type Given<S> = S extends Schema ? OutputOf<S> : never;

/** What a function with or without an output schema must return. */
export type Returns<S> = S extends Schema ? InputOf<S> : unknown;

export type ArgOf<S, F> = S extends Schema
  ? Param<InputOf<S>>
  : F extends (...args: infer P) => unknown
    ? P extends []
      ? // biome-ignore lint/suspicious/noConfusingVoidType: see Param
        void
      : Param<P[0]>
    : never;

/** The types of a contract, which has no function to infer from. */
export type InOr<S, Default> = S extends Schema ? Param<InputOf<S>> : Default;
export type OutOr<S, Default> = S extends Schema ? OutputOf<S> : Default;

export type Schemas<I extends MaybeSchema, O extends MaybeSchema> = {
  input?: I;
  output?: O;
};

// Checks on what a function yields and returns, in types of their own, so that the compiler says what is wrong in one line instead of ten.

/** Like `never`, but an `any` that comes from another error passes too. */
export type Nothing = "nothing";
type IsAny<T> = 0 extends 1 & T ? true : false;
export type EffectsIn<T> = IsAny<T> extends true ? never : Extract<T, Effect<unknown>>;
export type OthersIn<T> = unknown extends T ? never : Exclude<T, Effect<unknown>>;
