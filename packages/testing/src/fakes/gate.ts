/**
 * An activity body that blocks until the test opens it: the test chooses the order in which activities end.
 *
 * 1. Calls with equal keys wait in line; each `open` or `fail` lets the first of them go.
 * 2. Waiting for a call moves no time: where time has to pass before it comes, let the environment wait (`env.until(() => gate.waiting.includes(key))`).
 * 3. A call that is no longer wanted stays in the gate: what its activity does then is dropped, as with any activity that ignores its signal.
 */
import type { ActivityContext } from "@wovyr/sdk";
import { checkFunction } from "../checks.ts";
import { type Speaker, speaks } from "../environment/last-words.ts";

export type GateCall<I> = { readonly key: string; readonly input: I; readonly ctx: ActivityContext };

type Blocked<I, O> = GateCall<I> & { readonly resolve: (output: O) => void; readonly reject: (error: unknown) => void };

export class Gate<I, O> implements Speaker {
  readonly #keyOf: (input: I) => string;
  readonly #blocked: Blocked<I, O>[] = [];
  readonly #arrivals: { readonly key: string | undefined; readonly tell: (call: GateCall<I>) => void }[] = [];
  /** Calls so far, those that have gone included. */
  calls = 0;

  constructor(keyOf: (input: I) => string = String) {
    checkFunction(keyOf, "what a Gate is given");
    this.#keyOf = keyOf;
  }

  /** The activity's function. */
  readonly body = (input: I, ctx: ActivityContext): Promise<O> =>
    new Promise<O>((resolve, reject) => {
      const call = { key: this.#keyOf(input), input, ctx, resolve, reject };
      this.calls += 1;
      this.#blocked.push(call);
      for (const arrival of [...this.#arrivals]) {
        if (arrival.key !== undefined && arrival.key !== call.key) continue;
        this.#arrivals.splice(this.#arrivals.indexOf(arrival), 1);
        speaks(this, this.#arrivals.length > 0);
        arrival.tell(call);
      }
    });

  /** Keys of the calls that are blocked, in the order in which they came. */
  get waiting(): string[] {
    return this.#blocked.map((call) => call.key);
  }

  /** Resolves with the call that is blocked under the key (any, when none is given), as soon as there is one. */
  arrived(key?: string): Promise<GateCall<I>> {
    const here = this.#blocked.find((call) => key === undefined || call.key === key);
    if (here !== undefined) return Promise.resolve(here);
    speaks(this, true);
    return new Promise((tell) => this.#arrivals.push({ key, tell }));
  }

  /** What it waits for when the process ends. */
  get lastWords(): string {
    const [arrival] = this.#arrivals;
    const key = JSON.stringify(arrival?.key) ?? "";
    return `The test waits for gate.arrived(${key}), and no call comes. Where time has to pass before, await env.until(() => gate.waiting.${key === "" ? "length > 0" : `includes(${key})`}).`;
  }

  /** Lets the first call of the key end with a value. */
  open(key: string, output: O): void {
    this.#take(key).resolve(output);
  }

  /** Lets the first call of the key fail. */
  fail(key: string, error: unknown): void {
    this.#take(key).reject(error);
  }

  #take(key: string): Blocked<I, O> {
    const index = this.#blocked.findIndex((call) => call.key === key);
    const [call] = index < 0 ? [] : this.#blocked.splice(index, 1);
    if (call === undefined) throw new Error(`nothing is blocked under "${key}"; blocked: ${this.waiting.join(", ") || "nothing"}`);
    return call;
  }
}
