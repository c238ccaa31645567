/**
 * Where commands go: into the turn that is being made, or against the turn that is being replayed.
 *
 * 1. Live, a command is appended as it is.
 * 2. On replay, each command is compared with the next one of the recorded turn in kind, effect, name and digest, and the recorded one is what counts:
 *    ids, due times and recorded values come from it.
 * 3. A mismatch consumes nothing: the first difference is remembered and the execution stops there.
 */
import { type CallSite, sitesAreRemembered } from "../effects/effect.ts";
import { DeterminismError } from "../model/errors.ts";
import { keyText } from "../model/event-key.ts";
import type { CodeLine, Command, EffectId, HistoryFact, Payload, PlannedCompensation, Turn } from "../model/history.ts";
import { lineOf } from "./call-site.ts";

/** Commands that replay passes over: what follows from the code's variables is made again by itself, and marks of changes are asked for by `patched`. */
const isDerived = (fact: HistoryFact) => fact.type === "VariablesChanged" || fact.type === "AttributesChanged" || fact.type === "Patched";

const commandTypes: Record<Command["type"], true> = {
  ActivityScheduled: true,
  TimerStarted: true,
  EventAwaited: true,
  EventConsumed: true,
  ChildStarted: true,
  SideEffectRecorded: true,
  ConditionAwaited: true,
  ConditionMet: true,
  Patched: true,
  UpdateCompleted: true,
  UpdateFailed: true,
  EffectCancelled: true,
  ChildCancelRequested: true,
  CompensationStarted: true,
  CompensationCompleted: true,
  CompensationFailed: true,
  CompensationStuck: true,
  VariablesChanged: true,
  AttributesChanged: true,
  InstanceCompleted: true,
  InstanceFailed: true,
  InstanceTimedOut: true,
  InstanceCancelled: true,
  InstanceTerminated: true,
  InstanceCompensated: true,
  InstanceCompensationFailed: true,
  InstanceContinuedAsNew: true,
};

export const isCommand = (fact: HistoryFact): fact is Command => fact.type in commandTypes;

/** Compensations that a message names. */
const shownCompensations = 5;

/** How a command is named in a message: its kind, name and place. */
export function describeFact(fact: HistoryFact): string {
  switch (fact.type) {
    case "ActivityScheduled":
      return `activity "${fact.name}" as effect ${fact.effect}`;
    case "TimerStarted":
      return `timer (${fact.purpose}) as effect ${fact.effect}`;
    case "EventAwaited":
      return `wait for event "${fact.name}"${keyText(fact.key)} as effect ${fact.effect}`;
    case "ChildStarted":
      return `child "${fact.workflow}" as effect ${fact.effect}`;
    case "SideEffectRecorded":
      return `side effect ${fact.effect}`;
    case "EventConsumed":
      return `event ${fact.message} taken by effect ${fact.effect}`;
    case "ConditionAwaited":
      return `condition ${fact.effect}`;
    case "ConditionMet":
      return `condition ${fact.effect} that holds`;
    case "UpdateCompleted":
    case "UpdateFailed":
      return `the end of update ${fact.message}`;
    case "EffectCancelled":
      return `cancellation of effect ${fact.effect}`;
    case "ChildCancelRequested":
      return `request to child ${fact.effect} to undo what it did`;
    case "CompensationStarted": {
      const undone = fact.compensations.map(({ undoes, name }) => `"${name}" (effect ${undoes})`);
      return `compensation of ${undone.slice(0, shownCompensations).join(", ")}${undone.length > shownCompensations ? ", …" : ""}`;
    }
    case "CompensationCompleted":
      return `the end of compensation ${fact.effect}`;
    case "CompensationFailed":
    case "CompensationStuck":
      return `the failure of compensation ${fact.effect}`;
    case "InstanceCompleted":
      return "the end of the workflow (completed)";
    case "InstanceFailed":
      return "the end of the workflow (failed)";
    case "InstanceTimedOut":
      return "the end of the workflow (timed out)";
    case "InstanceCancelled":
      return "the end of the workflow (cancelled)";
    case "InstanceTerminated":
      return "the end of the workflow (terminated)";
    case "InstanceCompensated":
      return "the end of the workflow (compensated)";
    case "InstanceCompensationFailed":
      return "the end of the workflow (not all of it is compensated)";
    case "InstanceContinuedAsNew":
      return "the end of the run (continued as new)";
    default:
      return fact.type;
  }
}

/** Whether what history holds is what the code asks for: kind, place, name and input. Due times and recorded values are history's to say. */
function matches(recorded: HistoryFact, command: Command): boolean {
  if (recorded.type !== command.type) return false;
  if ("effect" in command && command.effect !== (recorded as typeof command).effect) return false;
  switch (command.type) {
    case "ActivityScheduled":
      return command.name === (recorded as typeof command).name && command.digest === (recorded as typeof command).digest;
    case "ChildStarted":
      return command.workflow === (recorded as typeof command).workflow && command.digest === (recorded as typeof command).digest;
    case "InstanceContinuedAsNew":
      return command.digest === (recorded as typeof command).digest;
    case "EventAwaited":
      return command.name === (recorded as typeof command).name && command.key === (recorded as typeof command).key;
    case "CompensationStarted":
      return sameCompensations(command.compensations, (recorded as typeof command).compensations);
    case "EventConsumed":
    case "UpdateCompleted":
    case "UpdateFailed":
      return command.message === (recorded as typeof command).message;
    default:
      return true;
  }
}

function sameCompensations(asked: readonly PlannedCompensation[], recorded: readonly PlannedCompensation[]): boolean {
  return (
    asked.length === recorded.length &&
    asked.every(({ effect, undoes }, index) => effect === recorded[index]?.effect && undoes === recorded[index]?.undoes)
  );
}

/** Characters of the value that a fact holds. */
function weightOf(fact: HistoryFact): number {
  switch (fact.type) {
    case "ActivityScheduled":
    case "ChildStarted":
    case "UpdateRequested":
    case "InstanceStarted":
    case "StartReplaced":
      return fact.input.length;
    case "ActivityCompleted":
    case "ChildCompleted":
    case "UpdateCompleted":
      return fact.output.length;
    case "EventReceived":
      return fact.payload.length;
    case "VariablesChanged":
      return fact.variables.length;
    default:
      return 0;
  }
}

export type Divergence = {
  readonly seq: number;
  readonly expected: HistoryFact | undefined;
  readonly got: Command | undefined;
  /** Changes whose marks history holds up to here, and that the code has not asked for. */
  readonly unasked: readonly string[];
  /** Changes that the code asked for where history holds no mark of them, so that the answer was no. */
  readonly unmarked: readonly string[];
};

export class Recorder {
  /** Commands and incoming facts of the turn that is being made. */
  #made: HistoryFact[] = [];
  #replayed: Turn | undefined;
  #cursor = 0;
  #base = 0;
  #patches: Set<string> | undefined;
  /** Changes whose marks a replay came by. */
  #marks: Set<string> | undefined;
  /** Changes that were asked for in vain. */
  #unmarked: Set<string> | undefined;
  /** Characters of the values of the turns so far, and of the present one. */
  #weight = 0;
  #turnWeight = 0;
  #divergence: Divergence | undefined;

  get replaying(): boolean {
    return this.#replayed !== undefined;
  }

  get divergence(): Divergence | undefined {
    return this.#divergence;
  }

  /** Events of the run so far, those of the present turn included: the same when a turn is made and when it is replayed. */
  get position(): number {
    return this.#base + (this.#replayed === undefined ? this.#made.length : this.#cursor);
  }

  /** The recorded input of an effect, when the replayed turn's next command is of this effect and this digest. */
  inputOf(effect: EffectId, digest: string): Payload | undefined {
    const turn = this.#replayed;
    if (turn === undefined) return undefined;
    this.#skipDerived(turn);
    const next = turn.events[this.#cursor];
    return next !== undefined && "digest" in next && "effect" in next && next.effect === effect && next.digest === digest
      ? next.input
      : undefined;
  }

  /** Characters of the values in the turns before this one: the same when a turn is made and when it is replayed. */
  get weight(): number {
    return this.#weight;
  }

  beginTurn(): void {
    this.#weight += this.#turnWeight;
    this.#turnWeight = 0;
  }

  beginReplay(turn: Turn): void {
    this.#replayed = turn;
    this.#cursor = 0;
  }

  /** The next incoming fact of the replayed turn; undefined at its end. Commands before it that the code did not ask for are a divergence. */
  nextIncoming(): HistoryFact | undefined {
    const turn = this.#replayed;
    if (turn === undefined) return undefined;
    this.#skipDerived(turn);
    const fact = turn.events[this.#cursor];
    if (fact === undefined) return undefined;
    if (isCommand(fact)) {
      this.#diverge(turn, fact, undefined);
      return undefined;
    }
    this.#cursor += 1;
    return fact;
  }

  /** Whether the replayed turn goes on with a command of this type, and of this effect where one is named. */
  nextIs(type: Command["type"], effect?: EffectId): boolean {
    const turn = this.#replayed;
    if (turn === undefined) return false;
    this.#skipDerived(turn);
    const next = turn.events[this.#cursor];
    return next?.type === type && (effect === undefined || ("effect" in next && next.effect === effect));
  }

  /** Whether a change applies: it does from where it was recorded first, which is here when nothing is replayed. */
  patched(patch: string): boolean {
    if (this.#patches?.has(patch) === true) return true;
    const turn = this.#replayed;
    if (turn !== undefined && !this.#marked(turn, patch)) {
      this.#unmarked ??= new Set();
      this.#unmarked.add(patch);
      return false;
    }
    if (turn === undefined) this.#made.push({ type: "Patched", patch });
    this.#patches ??= new Set();
    this.#patches.add(patch);
    return true;
  }

  /** Whether the mark of a change stands here, among what replay passes over. */
  #marked(turn: Turn, patch: string): boolean {
    // Variables may have been passed over already: the marks before the cursor, up to the last command that the code asked for, count as well.
    for (let at = this.#cursor - 1; at >= 0; at--) {
      const fact = turn.events[at];
      if (fact === undefined || !isDerived(fact)) break;
      if (fact.type === "Patched" && fact.patch === patch) return true;
    }
    for (let at = this.#cursor; at < turn.events.length; at++) {
      const fact = turn.events[at];
      if (fact === undefined || !isDerived(fact)) break;
      if (fact.type === "Patched" && fact.patch === patch) return true;
    }
    return false;
  }

  endReplay(): void {
    for (const fact of this.#replayed?.events ?? []) this.#turnWeight += weightOf(fact);
    this.#base += this.#replayed?.events.length ?? 0;
    this.#replayed = undefined;
  }

  incoming(fact: HistoryFact): void {
    this.#made.push(fact);
  }

  /** `site` is where it was asked for; what is recorded names its line while lines are remembered. */
  command<C extends Command>(command: C, site?: CallSite): C {
    const turn = this.#replayed;
    if (turn === undefined) {
      const line = site !== undefined && sitesAreRemembered() ? shortLine(site) : undefined;
      const made = line === undefined ? command : { ...command, line };
      this.#made.push(made);
      return made;
    }
    this.#skipDerived(turn);
    const recorded = turn.events[this.#cursor];
    if (recorded === undefined || !matches(recorded, command)) {
      this.#diverge(turn, recorded, command);
      return command;
    }
    this.#cursor += 1;
    return recorded as C;
  }

  #diverge(turn: Turn, expected: HistoryFact | undefined, got: Command | undefined): void {
    const unasked = [...(this.#marks ?? [])].filter((patch) => this.#patches?.has(patch) !== true);
    this.#divergence ??= { seq: turn.seq + this.#cursor, expected, got, unasked, unmarked: [...(this.#unmarked ?? [])] };
  }

  /** Ends the turn that is being made and hands over its facts. */
  take(): HistoryFact[] {
    const made = this.#made;
    if (made.length === 0) return made;
    for (const fact of made) this.#turnWeight += weightOf(fact);
    this.#base += made.length;
    this.#made = [];
    return made;
  }

  #skipDerived(turn: Turn): void {
    for (;;) {
      const fact = turn.events[this.#cursor];
      if (fact === undefined || !isDerived(fact)) return;
      if (fact.type === "Patched") {
        this.#marks ??= new Set();
        this.#marks.add(fact.patch);
      }
      this.#cursor += 1;
    }
  }
}

/** Of the last frame's path only the file. */
function shortLine(site: CallSite): CodeLine | undefined {
  return lineOf(site)?.replace(/^.*[\\/]|:\d+$/g, "");
}

/** `site` is where the code asked for what history does not hold; `after`, when that is not known, the yield before. */
export function divergenceError(divergence: Divergence, workflow: string, site: string | undefined, after?: string): DeterminismError {
  const recordedAt = (divergence.expected as { readonly line?: CodeLine } | undefined)?.line;
  const recordedText = recordedAt === undefined ? "" : ` at ${recordedAt}`;
  const siteText = site !== undefined ? ` at ${site}` : after !== undefined ? ` after the yield at ${after}` : "";
  const expected = divergence.expected === undefined ? "nothing more in this turn" : describeFact(divergence.expected);
  const got = divergence.got === undefined ? "nothing" : describeFact(divergence.got);
  const input =
    divergence.expected !== undefined &&
    divergence.got !== undefined &&
    divergence.expected.type === divergence.got.type &&
    "digest" in divergence.got &&
    got === expected
      ? " with another input"
      : "";
  const patches = patchesText(divergence);
  return new DeterminismError(
    `The code of workflow "${workflow}" no longer matches its history at event ${divergence.seq}: history recorded ${expected}${recordedText}; the code now asks for ${got}${input}${siteText}. ${patches === undefined ? "" : `${patches} `}Deploy code that asks for the same effects in the same order; the run goes on then.`,
    { seq: divergence.seq, expected, got: `${got}${input}`, site, recordedAt, patches },
  );
}

/** What the marks of changes have to do with it. */
function patchesText({ unasked, unmarked }: Divergence): string | undefined {
  const list = (patches: readonly string[]) => patches.map((patch) => `patched("${patch}")`).join(", ");
  const said: string[] = [];
  if (unmarked.length > 0) said.push(`For this run ${list(unmarked)} is false: its history holds no mark of the change.`);
  if (unasked.length > 0)
    said.push(
      `History was recorded with ${list(unasked)}, which this code does not ask for: was it rolled back, or a change retired too early?`,
    );
  return said.length === 0 ? undefined : said.join(" ");
}
