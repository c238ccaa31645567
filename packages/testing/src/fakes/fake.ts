/**
 * Stand-ins for what workflows call: activities, children, and events that others would send.
 *
 * 1. What a fake answers passes through the same door as the real thing: schemas, retries, timeouts, history.
 * 2. The entries of a sequence belong to attempts in the order in which they begin; the same attempt, made again after a crash, gets the same entry.
 * 3. A call is noted before the fake answers.
 */
import type { Activity, ActivityContext, Duration, EventDef, Workflow } from "@wovyr/sdk";
import { checkOptions, milliseconds } from "@wovyr/sdk/internal";
import { refuse, shown } from "../checks.ts";
import { WrongTestError } from "./wrong-test.ts";

export type FakeCall<I> = {
  readonly input: I;
  /** From 1; of an event: which of its fakes was asked for. */
  readonly attempt: number;
  readonly instanceId: string;
  /** `runId/effectId`: the same for every attempt of one call. */
  readonly idempotencyKey: string;
};

export interface Fake<out I = unknown> {
  readonly kind: "activity" | "workflow" | "event";
  /** Name of what it stands for. */
  readonly target: string;
  /** Every call so far, in the order in which they came. */
  readonly calls: readonly FakeCall<I>[];
  /** Forgets the calls; a sequence begins anew. */
  reset(): void;
}

export type FakeEventOptions = {
  /** How long after the workflow began to wait the event comes, in virtual time; default: at once. */
  readonly after?: Duration;
};

type Awaitable<T> = T | Promise<T>;
type Target<I, O> = Activity<I, O> | Workflow<I, O>;
/** What an event's fake is told about the wait that it answers. */
export type AwaitedBy = {
  readonly instanceId: string;
  /** What the wait asks for, where it does. */
  readonly key?: string;
};

/** Lets a function answer for an activity or a child workflow, or a list of answers and errors, one an attempt, or an error every time. */
export function fake<I, O>(target: Target<I, O>, fn: (input: NoInfer<I>, ctx: ActivityContext) => Awaitable<NoInfer<O>>): Fake<I>;
export function fake<I, O>(target: Target<I, O>, sequence: readonly (NoInfer<O> | Error)[]): Fake<I>;
export function fake<I, O>(target: Target<I, O>, error: Error): Fake<I>;
/** Sends an event to whoever begins to wait for it, or publishes it where the wait has a key: what the function returns, or the next of the list. When the list is used up, none is sent. */
export function fake<P>(
  event: EventDef<unknown, P>,
  payload: ((wait: AwaitedBy) => Awaitable<NoInfer<P>>) | readonly NoInfer<P>[],
  options?: FakeEventOptions,
): Fake<AwaitedBy>;
/** The same for an activity or a step by its name. */
export function fake(name: string, answer: ((input: never, ctx: ActivityContext) => unknown) | readonly unknown[] | Error): Fake;
export function fake(target: AnyTarget, answer: unknown, options: FakeEventOptions = {}): Fake {
  const [kind, name] = identify(target);
  const what = `the fake of ${kind} "${name}"`;
  if (typeof answer !== "function" && !Array.isArray(answer) && !(answer instanceof Error))
    refuse(`${what} needs a function, an array of answers or an Error, not ${shown(answer)}`);
  checkOptions(options, ["after"], what);
  if (kind === "event" && (answer instanceof Error || (Array.isArray(answer) && answer.some((each) => each instanceof Error))))
    refuse(`${what} sends payloads, and an Error is none: end its list where no event is to come any more`);
  if (options.after !== undefined && kind !== "event")
    refuse(`${what} takes no \`after\`: a function that awaits \`env.sleep(…)\` answers later`);
  const after = options.after === undefined ? 0 : milliseconds(options.after, `\`after\` of ${what}`);
  return new AnyFake(kind, name, kind === "workflow" ? (target as Workflow<never, unknown>) : undefined, answer as Answer, after);
}

type AnyTarget = string | Activity<never, unknown> | Workflow<never, unknown> | EventDef<unknown, never>;
type Answer = ((input: unknown, ctx: unknown) => unknown) | readonly unknown[] | Error;

function identify(target: unknown): [AnyFake["kind"], string] {
  if (typeof target === "string" && target !== "") return ["activity", target];
  if (typeof target === "function" && "activity" in target) return ["activity", String(target.activity)];
  if (target instanceof AnyFake) refuse(`what is faked is itself ${shownFake(target)}`);
  if (typeof target === "object" && target !== null && "name" in target && typeof target.name === "string")
    return ["definition" in target ? "workflow" : "event", target.name];
  return refuse(`what is faked must be an activity, a workflow, an event, or the name of an activity or a step, not ${shown(target)}`);
}

const shownFake = ({ kind, target }: AnyFake) => `the fake of ${kind} "${target}": give \`fakes\` a list of them`;

/** Sent by an event's fake whose list is used up. */
export const nothing = Symbol("nothing");

export class AnyFake implements Fake {
  readonly kind: "activity" | "workflow" | "event";
  readonly target: string;
  readonly workflow: Workflow<never, unknown> | undefined;
  /** Milliseconds. */
  readonly after: number;
  readonly #answer: Answer;
  #calls: FakeCall<unknown>[] = [];
  /** Which entry of the sequence an attempt got. */
  #entries = new Map<string, number>();

  constructor(kind: AnyFake["kind"], target: string, workflow: AnyFake["workflow"], answer: Answer, after: number) {
    this.kind = kind;
    this.target = target;
    this.workflow = workflow;
    this.#answer = answer;
    this.after = after;
  }

  get calls(): readonly FakeCall<unknown>[] {
    return this.#calls;
  }

  reset(): void {
    this.#calls = [];
    this.#entries = new Map();
  }

  /** Notes the call and answers it: returns, throws or promises what the test said. */
  answer(call: FakeCall<unknown>, ctx: unknown): unknown {
    this.#calls.push(call);
    const answer = this.#answer;
    if (typeof answer === "function") return answer(call.input, ctx);
    if (answer instanceof Error) throw answer;
    const entry = this.#entry(call);
    if (entry >= answer.length) {
      if (this.kind === "event") return nothing;
      throw new WrongTestError(
        `the fake of ${this.kind} "${this.target}" has ${answer.length} answers and was asked for one more: add it to its sequence`,
      );
    }
    const value = answer[entry];
    if (value instanceof Error) throw value;
    return value;
  }

  #entry({ idempotencyKey, attempt }: FakeCall<unknown>): number {
    const key = `${idempotencyKey}#${attempt}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = this.#entries.size;
    this.#entries.set(key, entry);
    return entry;
  }
}
