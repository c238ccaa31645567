/**
 * Where one case of an exploration is played: what happens outside is held back until it is chosen, and what goes wrong goes wrong at its place.
 *
 * 1. Everything that an attempt or a faked event would tell the engine waits here, in the order in which it came.
 * 2. The fault of the case strikes once, at the commit (a flush, or a publication) or the attempt with its number.
 * 3. What the store said is durable is written down: history must hold exactly that.
 */
import type { HistoryFact } from "@wovyr/sdk/internal";
import {
  type Beat,
  type Flush,
  type FlushOutcome,
  type Membership,
  nothingDone,
  type StoreProvider,
  StoreUnavailableError,
} from "@wovyr/server/internal";
import { Changes } from "../environment/changes.ts";
import type { ConductedAttempt, Conductor } from "../environment/conductor.ts";
import type { SeededRandom } from "../environment/seeded-random.ts";
import type { FrozenEngine } from "../environment/zombies.ts";
import { providerAround, type StoreCall } from "../faults/store-calls.ts";
import { valueText } from "../history/history-text-value.ts";
import type { Fault } from "./case.ts";

export type Happening = {
  readonly label: string;
  readonly happen: () => void;
  /** Whether it belongs to the world outside, and outlives the engine. */
  readonly lasting: boolean;
};

/** What a fault does to the engine that runs. */
export type Engines = { crash(): void; freeze(): FrozenEngine; readonly random: SeededRandom };

export type Written = { readonly run: string; readonly tail: number; readonly events: string; readonly node: string };

const never = new Promise<never>(() => {});

export class Stage implements Conductor {
  engines: Engines | undefined;
  commits = 0;
  /** Attempts that began, in order. */
  readonly attempts: ConductedAttempt[] = [];
  readonly written: Written[] = [];
  /** What must never be. */
  readonly problems: string[] = [];
  /** Set from when an engine has been frozen until it is thawed. */
  frozen: FrozenEngine | undefined;
  /** Hears of every attempt that begins. */
  began: (attempt: string) => void = () => {};
  /** Whether the fault has struck. */
  struck = false;
  readonly #fault: Fault | undefined;
  readonly #completed = new Set<string>();
  readonly #changes = new Changes();
  #held: Happening[] = [];
  /** Attempts whose bodies run. */
  readonly #bodies = new Map<ConductedAttempt, string>();
  #life = 0;
  #releaseFrozen = () => {};

  constructor(fault: Fault | undefined) {
    this.#fault = fault;
  }

  /** What may happen next. */
  get held(): readonly Happening[] {
    return this.#held;
  }

  take(happening: Happening): void {
    this.#held = this.#held.filter((other) => other !== happening);
    happening.happen();
  }

  /** Attempts whose bodies run, for people. */
  get running(): string[] {
    return [...this.#bodies.values()];
  }

  /** Resolves when no attempt's body is running, or when so many milliseconds of real time have passed. */
  async bodiesEnded(patience: number): Promise<void> {
    if (this.#bodies.size === 0) return;
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      this.#changes.tell();
    }, patience).unref();
    while (this.#bodies.size > 0 && !over) await this.#changes.next;
    clearTimeout(timer);
  }

  /** What ran in the engine that is gone tells nobody anything. */
  lost(): void {
    this.#life += 1;
    this.#bodies.clear();
    this.#held = this.#held.filter(({ lasting }) => lasting);
    this.#changes.tell();
  }

  async attempt(attempt: ConductedAttempt, run: () => Promise<unknown>): Promise<unknown> {
    const life = this.#life;
    this.attempts.push(attempt);
    if (this.#completed.has(attempt.key))
      this.problems.push(`activity "${attempt.name}" (${attempt.key}) ran again although its completion was durable`);
    const number = this.attempts.length;
    const label = labelOf(attempt);
    this.began(label);
    if (this.#strikes("crash-before-activity", number)) return this.#crash();
    if (!attempt.own) this.#bodies.set(attempt, label);
    const outcome = await run().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (life !== this.#life) return never;
    this.#bodies.delete(attempt);
    this.#changes.tell();
    if (this.#strikes("crash-after-activity", number)) return this.#crash();
    await this.#hold(`${label} ends`, false);
    return outcome();
  }

  async event(name: string, send: () => Promise<void>): Promise<void> {
    await this.#hold(`event ${name} comes`, true);
    await send();
  }

  /** The store in which the fault strikes. */
  around(provider: StoreProvider): StoreProvider {
    return providerAround(provider, async (call, run) => {
      if (call.method === "commit") return this.#commit(call, run as () => Promise<FlushOutcome>);
      if (call.method === "publish") return this.#durably(run, () => {});
      const value = await run();
      // The shards have changed hands: now arrives what the frozen engine had sent.
      if (call.method === "beat" && isOwner(call.args[0] as Beat, value as Membership)) this.#releaseFrozen();
      return value;
    });
  }

  #commit(call: StoreCall, run: () => Promise<FlushOutcome>): Promise<FlushOutcome> {
    if (this.#strikes("refuse-commit", this.commits + 1)) {
      this.commits += 1;
      return Promise.resolve(nothingDone());
    }
    return this.#durably(run, (outcome) => this.#writeDown(call.args[0] as Flush, outcome));
  }

  /** A call that makes something durable: a flush, or a publication. */
  async #durably<T>(run: () => Promise<T>, writeDown: (outcome: T) => void): Promise<T> {
    this.commits += 1;
    const number = this.commits;
    if (this.#strikes("crash-before-commit", number)) return this.#crash();
    if (this.#strikes("fail-commit", number)) throw new StoreUnavailableError("the connection broke before the commit");
    if (this.#strikes("freeze-at-commit", number)) await this.#freeze();
    const outcome = await run();
    writeDown(outcome);
    if (this.#strikes("crash-after-commit", number)) return this.#crash();
    if (this.#strikes("lose-answer-of-commit", number)) throw new StoreUnavailableError("the connection broke after the commit");
    return outcome;
  }

  #strikes(kind: Fault["kind"], number: number): boolean {
    const strikes = this.#fault?.kind === kind && this.#fault.number === number && this.engines !== undefined;
    this.struck ||= strikes;
    // A start that came to nothing is made again with the same run id and seed.
    if (strikes && this.written.length === 0) this.engines?.random.restart();
    return strikes;
  }

  #crash(): Promise<never> {
    this.engines?.crash();
    this.lost();
    return never;
  }

  async #freeze(): Promise<void> {
    this.frozen = this.engines?.freeze();
    this.lost();
    await new Promise<void>((resolve) => {
      this.#releaseFrozen = resolve;
    });
  }

  #hold(label: string, lasting: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#held.push({ label, happen: resolve, lasting });
      this.#changes.tell();
    });
  }

  #writeDown(flush: Flush, { done }: FlushOutcome): void {
    for (const { run, tail, events, node } of flush.turns) {
      if (!done.has(run)) continue;
      this.written.push({ run, tail, events, node });
      for (const fact of JSON.parse(events) as HistoryFact[])
        if (fact.type === "ActivityCompleted") this.#completed.add(`${run}/${fact.effect}`);
    }
  }
}

const isOwner = ({ node }: Beat, { shards }: Membership): boolean => shards.every(({ owner }) => owner === node);

/** Characters of an input that a label shows. */
const longestInput = 40;

/** `activity charge [2] {"id":"7"}`, with its attempt from the second on. */
function labelOf({ name, key, attempt, input }: ConductedAttempt): string {
  const shownInput = input === undefined ? "" : ` ${valueText(input, { bound: longestInput })}`;
  return `activity ${name} [${key.slice(key.indexOf("/") + 1)}]${shownInput}${attempt > 1 ? ` (attempt ${attempt})` : ""}`;
}
