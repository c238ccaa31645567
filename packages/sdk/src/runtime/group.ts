/**
 * Several branches as one operation: the common machine below `all`, `settled`, `any`, `race`, `select` and `map`.
 *
 * 1. Branches start in order; once the group is decided no further one starts.
 * 2. When it is decided, open branches are cancelled in the order of their creation, and the group settles after the last of them has closed.
 * 3. What a loser says while it closes changes nothing; its error is logged.
 */
import type { Branch } from "../effects/effect.ts";
import type { CancelledError } from "../model/errors.ts";
import type { EffectId } from "../model/history.ts";
import { closing } from "./closing.ts";
import type { Fiber } from "./fiber.ts";
import type { Done, Operation, Outcome } from "./operation.ts";
import { rejected } from "./operation.ts";

/** What a combinator makes of its branches' outcomes. */
export interface GroupPolicy {
  /** Called for each outcome in the order of their arrival; what it returns decides the group. */
  settled(index: number, outcome: Outcome): Outcome | undefined;
  /** Called when every branch has settled and none has decided. */
  complete(): Outcome;
}

export class Group implements Operation {
  readonly #owner: Fiber;
  readonly #id: EffectId;
  readonly #size: number;
  readonly #branch: (index: number) => Branch;
  readonly #policy: GroupPolicy;
  readonly #done: Done;
  readonly #concurrency: number;
  readonly #open = new Map<number, Operation>();
  #next = 0;
  #settledCount = 0;
  #decision: Outcome | undefined;
  #starting = false;
  #closed = false;

  constructor(
    owner: Fiber,
    id: EffectId,
    size: number,
    branch: (index: number) => Branch,
    policy: GroupPolicy,
    done: Done,
    concurrency = size,
  ) {
    this.#owner = owner;
    this.#id = id;
    this.#size = size;
    this.#branch = branch;
    this.#policy = policy;
    this.#done = done;
    this.#concurrency = concurrency;
  }

  start(): void {
    this.#fill();
    this.#closeIfOver();
  }

  cancel(reason: CancelledError): void {
    this.#decide(rejected(reason), reason);
    this.#closeIfOver();
  }

  abandon(): void {
    this.#closed = true;
    for (const operation of this.#open.values()) operation.abandon();
    this.#open.clear();
  }

  undoing(): boolean {
    return [...this.#open.values()].some((operation) => operation.undoing?.() === true);
  }

  #fill(): void {
    this.#starting = true;
    while (this.#decision === undefined && !this.#closed && this.#next < this.#size && this.#open.size < this.#concurrency) {
      const index = this.#next++;
      let settledAtOnce = false;
      const operation = this.#owner.execution.interpreter.startBranch(
        () => this.#branch(index),
        `${this.#id}.${index}`,
        this.#owner,
        (outcome) => {
          settledAtOnce = true;
          this.#settled(index, outcome);
        },
      );
      if (!settledAtOnce) this.#open.set(index, operation);
    }
    this.#starting = false;
    if (this.#decision !== undefined) this.#cancelOpen(closing);
  }

  #settled(index: number, outcome: Outcome): void {
    this.#open.delete(index);
    if (this.#closed) return;
    if (this.#decision !== undefined) {
      if (!outcome.ok) this.#owner.execution.logLoser(`${this.#id}.${index}`, outcome.error);
    } else {
      this.#settledCount += 1;
      const decision = this.#policy.settled(index, outcome);
      if (decision !== undefined) this.#decide(decision, closing);
      else if (!this.#starting) this.#fill();
    }
    if (!this.#starting) this.#closeIfOver();
  }

  #decide(decision: Outcome, reason: CancelledError): void {
    if (this.#decision !== undefined) return;
    this.#decision = decision;
    if (!this.#starting) this.#cancelOpen(reason);
  }

  #cancelOpen(reason: CancelledError): void {
    for (const operation of [...this.#open.values()]) operation.cancel(reason);
  }

  #closeIfOver(): void {
    if (this.#closed || this.#open.size > 0) return;
    if (this.#decision === undefined && this.#settledCount < this.#size) return;
    this.#closed = true;
    this.#done(this.#decision ?? this.#policy.complete());
  }
}
