/**
 * The effects of a history as a tree of places: what each came to, and which contain which.
 *
 * 1. A fact asks for an effect or says what became of one; facts that name an effect that nobody asked for, and facts of types that are not known, become
 *    plain effects. Nothing throws.
 * 2. Steps of one generator are in the order of their ids; one with a chosen id stands after what was asked for before it.
 * 3. Beyond `maxNodes` effects are only counted.
 */
import type { EffectId, PlannedCompensation } from "../model/history.ts";
import { announcedLosses } from "../model/instance-state.ts";
import { widthOf } from "../model/open-compensation.ts";
import type { HistoryEvent } from "../protocol/operations.ts";
import { type EffectPlace, placeOf } from "./effect-place.ts";
import type { GraphAttempt, GraphFailure, NodeKind, NodeState } from "./graph.ts";
import { boundsCleanup, hasNode, insert, isOpen, type Mutable, newPlace, type Place, type Told } from "./place.ts";

/** Ids of nodes that are no effects. */
const reserved: ReadonlySet<string> = new Set(["start", "end", "more", "deadline"]);

type Data = Readonly<Record<string, unknown>>;

export class EffectTree {
  readonly root: Place;
  /** Places that messages from outside began. */
  readonly outside: Place[] = [];
  /** The start of the run, and its end or where it stands when it is paused or parked. */
  /** Whether its run waits for its turn before it is entered. */
  #awaitsTurn = false;
  readonly start: Told = { kind: "start", name: "start", startedAt: new Date(0), state: undefined, losses: 0 };
  end: Told | undefined;
  workflow = "";
  version = "";
  /** What each compensation undoes, by its id. */
  readonly undone = new Map<EffectId, EffectId>();
  /** Effects that found no room. */
  leftOut = 0;
  readonly #places = new Map<EffectId, Place>();
  readonly #maxNodes: number;
  /** Effects of updates, by message. */
  readonly #updates = new Map<string, EffectId>();
  /** Nodes that the tree will have; `start`, `end` and `more` are three. */
  #size = 3;
  #turn = 0;
  /** What the turn began with. */
  #cause: Place | undefined;
  #paused: Told | undefined;
  #parked: Told | undefined;

  constructor(maxNodes: number) {
    this.#maxNodes = maxNodes;
    this.root = newPlace("", { kind: "outside" }, undefined, 0);
    this.#places.set("", this.root);
  }

  /** Anything that is not over yet? */
  get open(): boolean {
    return this.end === undefined || this.end === this.#paused || this.end === this.#parked;
  }

  apply({ seq, turn, type, at, data }: HistoryEvent): void {
    if (this.#turn !== turn) {
      this.#turn = turn;
      this.#cause = undefined;
    }
    this.#fold(type, data, new Date(at), seq);
  }

  #startWaits(): void {
    this.start.state = "Scheduled";
    delete this.start.endedAt;
  }

  #fold(type: string, data: Data, at: Date, seq: number): void {
    const told = (kind: NodeKind, name: string, state: NodeState | undefined): Told => ({ kind, name, startedAt: at, state, losses: 0 });
    switch (type) {
      case "InstanceStarted":
        this.workflow = text(data.workflow);
        this.version = text(data.version);
        Object.assign(this.start, { name: this.workflow, startedAt: at, state: "Completed" satisfies NodeState, endedAt: at });
        if (data.admission === undefined) return;
        this.#awaitsTurn = true;
        this.#startWaits();
        return;
      case "AdmissionDecided":
        Object.assign(this.start, { state: (data.admitted === true ? "Completed" : "Cancelled") satisfies NodeState, endedAt: at });
        return;
      case "ActivityScheduled":
        this.#ask(data, seq, told("activity", text(data.name), data.semantics === "atMostOnce" ? "Scheduled" : "Running"), (asked) => {
          // Attempts of one that runs once at most are told of by themselves.
          asked.attempts = asked.state === "Running" ? [{ number: 1, startedAt: at }] : [];
        });
        return;
      case "TimerStarted":
        if (isStart(data)) {
          this.#startWaits();
          this.start.dueAt = timeOf(data.due);
        } else
          this.#ask(data, seq, told("timer", text(data.purpose), "Waiting"), (asked) => {
            asked.dueAt = timeOf(data.due);
          });
        return;
      case "EventAwaited":
        this.#ask(data, seq, told("event", text(data.name), "Waiting"));
        return;
      case "ChildStarted":
        this.#ask(data, seq, told("child", text(data.workflow), "Running"), (asked) => {
          asked.childRun = { workflow: text(data.workflow), id: text(data.id), runId: text(data.run) };
          asked.abandoned = data.onParentClose === "abandon";
        });
        return;
      case "SideEffectRecorded":
        this.#ask(data, seq, told("sideEffect", "side effect", undefined));
        this.#end(data, seq, at, data.failure === undefined ? "Completed" : "Failed");
        return;
      case "AttemptStarted":
        this.#attempt(data, (asked, attempts) => {
          asked.state = "Running";
          attempts.push({ number: Number(data.attempt), startedAt: at });
        });
        return;
      case "AttemptLost":
        this.#attempt(data, (asked, attempts) => lost(asked, attempts, data.cause === "shutdown" ? "shutdown" : "crash", at));
        return;
      case "ActivityFailed":
        this.#attemptFailed(data, seq, at);
        return;
      case "ActivityDecided":
        this.#decided(data, seq, at);
        return;
      case "TimerFired":
        if (isStart(data)) {
          if (!this.#awaitsTurn) Object.assign(this.start, { state: "Completed" satisfies NodeState, endedAt: at });
          return;
        }
        this.#end(data, seq, at, "Completed");
        return;
      case "EventConsumed":
        // A handler takes an event that nothing awaited.
        if (this.#places.get(text(data.effect))?.told === undefined) this.#ask(data, seq, told("event", handledEvent(data), "Running"));
        this.#end(data, seq, at, "Completed");
        return;
      case "ConditionAwaited":
        this.#ask(data, seq, told("event", "condition", "Waiting"));
        return;
      case "UpdateRequested": {
        const effect = `u:${this.#updates.size}`;
        this.#updates.set(text(data.message), effect);
        this.#ask({ effect }, seq, told("event", `update ${text(data.name)}`, "Running"));
        this.#told({ effect });
        return;
      }
      case "UpdateCompleted":
      case "UpdateFailed":
        this.#end({ ...data, effect: this.#updates.get(text(data.message)) }, seq, at, type === "UpdateFailed" ? "Failed" : "Completed");
        return;
      case "ActivityCompleted":
      case "ConditionMet":
      case "ChildCompleted":
        this.#end(data, seq, at, "Completed");
        return;
      case "ChildFailed":
        this.#end(data, seq, at, (text(data.status) || "Failed") as NodeState);
        return;
      case "ChildRejected":
        this.#end(data, seq, at, "Failed");
        return;
      case "EffectCancelled":
        if (isStart(data)) Object.assign(this.start, { state: "Cancelled" satisfies NodeState, endedAt: at });
        else this.#cancelled(data, seq, at);
        return;
      case "CompensationStarted":
        this.#undo(data, seq, at);
        return;
      case "CompensationCompleted":
        this.#endUndoing(data, seq, at, "Completed");
        return;
      case "CompensationFailed":
        this.#endUndoing(data, seq, at, "Failed");
        return;
      case "CompensationStuck":
        Object.assign(this.#told(data) ?? {}, { state: "Parked" satisfies NodeState, ...failureIn(data) });
        return;
      case "CompensationDecided":
        if (data.decision !== "retry") this.#endUndoing(data, seq, at, data.decision === "resolve" ? "Completed" : "Failed");
        else Object.assign(this.#told(data) ?? {}, { state: "Running" satisfies NodeState });
        return;
      case "Parked":
        this.#parked = { ...told("end", "parked", "Parked"), ...failureIn(data) };
        this.#held();
        return;
      case "Resumed":
        this.#parked = undefined;
        this.#held();
        return;
      case "PauseRequested":
        this.#paused ??= told("end", "paused", "Paused");
        this.#held();
        return;
      case "ResumeRequested":
        this.#paused = undefined;
        this.#held();
        return;
      case "Forked":
        this.#paused = undefined;
        this.#parked = undefined;
        this.#held();
        for (const child of Array.isArray(data.children) ? (data.children as Data[]) : []) this.#restarted(child);
        this.#beginAgain(at);
        return;
      case "Imported":
        this.#beginAgain(at);
        return;
      case "InstanceCompleted":
      case "InstanceFailed":
      case "InstanceTimedOut":
      case "InstanceCancelled":
      case "InstanceTerminated":
      case "InstanceCompensated":
      case "InstanceCompensationFailed":
      case "InstanceContinuedAsNew":
        this.#close(told("end", "end", type.slice("Instance".length) as NodeState), data, seq, at);
        return;
      case "EventReceived":
      case "CancelRequested":
      case "TerminateRequested":
      case "ChildCancelRequested":
      case "ResetRequested":
      case "VariablesChanged":
      case "AttributesChanged":
      case "Patched":
        return;
      default:
        // Of a later version: it is shown once, by its type.
        this.#ask(data, seq, told("unknown", type, undefined), undefined, `#${seq}`);
    }
  }

  /** Where the run stands when it takes no step. */
  #held(): void {
    this.end = this.#paused ?? this.#parked;
  }

  /** Another run does the work of a child. */
  #restarted({ effect, id, run }: Data): void {
    const childRun = this.#places.get(text(effect))?.told?.childRun;
    if (childRun !== undefined) Object.assign(childRun, { id: text(id), runId: text(run) });
  }

  /** Nobody runs what was running: each attempt begins once more. */
  #beginAgain(at: Date): void {
    for (const { told } of this.#places.values()) {
      const last = told?.attempts?.[told.attempts.length - 1];
      if (told === undefined || last === undefined || told.endedAt !== undefined) continue;
      if (told.state === "Retrying" || told.state === "Paused") continue;
      if (last.endedAt === undefined) Object.assign(last, { endedAt: at, lost: "shutdown" });
      told.state = told.losses < announcedLosses ? "Running" : "Lost";
      if (told.state === "Running") told.attempts?.push({ number: last.number, startedAt: at });
    }
  }

  /** What a person says of an activity that is paused. */
  #decided(data: Data, seq: number, at: Date): void {
    const told = this.#told(data);
    if (told === undefined) return;
    if (data.decision === "fail") this.#end(data, seq, at, "Failed");
    else {
      delete told.failure;
      if (data.decision === "resolve") this.#end(data, seq, at, "Completed");
      else told.state = "Scheduled";
    }
  }

  /** An effect is asked for: it gets its place, or is counted where there is no room. */
  #ask(data: Data, seq: number, told: Told, then?: (told: Told) => void, otherwise = ""): void {
    const id = text(data.effect) || otherwise;
    const known = this.#places.get(id);
    if (id === "" || reserved.has(id) || known?.told !== undefined) return;
    then?.(told);
    if (known === undefined && this.#size + this.#nodesFor(id) > this.#maxNodes) {
      this.leftOut += 1;
      return;
    }
    const place = this.#place(id, seq);
    this.#size += 1;
    place.told = told;
    place.until = told.state === undefined ? seq : Number.POSITIVE_INFINITY;
  }

  /** What was done is to be undone: all that is planned is shown, as far as there is room. */
  #undo(data: Data, seq: number, at: Date): void {
    const unwinding = text(data.effect);
    const within = unwinding === "~" || unwinding === "" ? this.root : this.#place(unwinding, seq);
    const order = data.order === "parallel" ? "parallel" : "reverse";
    const places: Place[] = [];
    for (const { effect, undoes, name } of plannedIn(data)) {
      if (this.#places.has(effect) || reserved.has(effect)) continue;
      if (this.#size + 1 > this.#maxNodes) {
        this.leftOut += 1;
        continue;
      }
      const place = newPlace(effect, { kind: "outside" }, within, seq);
      place.told = { kind: "compensation", name: `undo ${name}`, startedAt: at, state: "Scheduled", losses: 0 };
      place.until = Number.POSITIVE_INFINITY;
      this.#places.set(effect, place);
      this.undone.set(effect, undoes);
      this.#size += 1;
      places.push(place);
    }
    const undoing = { order, since: seq, places, next: 0 } as const;
    within.undoing.push({ ...undoing });
    for (let width = widthOf(order); width > 0; width -= 1) this.#beginUndoing(within);
  }

  #beginUndoing({ undoing }: Place): void {
    const last = undoing[undoing.length - 1];
    const next = last?.places[last.next];
    if (last === undefined || next === undefined) return;
    last.next += 1;
    if (next.told?.state === "Scheduled") next.told.state = "Running";
  }

  #endUndoing(data: Data, seq: number, at: Date, state: NodeState): void {
    this.#end(data, seq, at, state);
    const place = this.#places.get(text(data.effect));
    if (place?.within !== undefined && this.undone.has(place.id)) this.#beginUndoing(place.within);
  }

  #told(data: Data): Told | undefined {
    const place = this.#places.get(text(data.effect));
    if (place !== undefined) this.#cause = place;
    return place?.told;
  }

  #attempt(data: Data, then: (told: Told, attempts: Mutable<GraphAttempt>[]) => void): void {
    const told = this.#told(data);
    if (told?.attempts !== undefined) then(told, told.attempts);
  }

  #attemptFailed(data: Data, seq: number, at: Date): void {
    this.#attempt(data, (told, attempts) => {
      const last = attempts[attempts.length - 1];
      if (last !== undefined)
        Object.assign(last, { endedAt: at, ...failureIn(data), ...(data.retryAt !== undefined && { nextAt: timeOf(data.retryAt) }) });
      if (data.retryAt !== undefined) told.state = "Retrying";
      else if (data.paused === true) Object.assign(told, { state: "Paused" satisfies NodeState, ...failureIn(data) });
    });
    if (data.retryAt === undefined && data.paused !== true)
      this.#end(data, seq, at, nameIn(data) === "TimeoutError" ? "TimedOut" : "Failed");
  }

  #end(data: Data, seq: number, at: Date, state: NodeState): void {
    const told = this.#told(data);
    const place = this.#cause;
    if (told === undefined || place?.told !== told) return;
    Object.assign(told, { state, endedAt: at, ...failureIn(data) });
    const running = told.attempts?.[told.attempts.length - 1];
    if (running !== undefined && running.endedAt === undefined) running.endedAt = at;
    place.until = seq;
  }

  #cancelled(data: Data, seq: number, at: Date): void {
    const id = text(data.effect);
    const late = this.#places.get(`${id}!timeout`)?.told?.state === "Completed";
    const cause = this.#cause;
    this.#end(data, seq, at, late ? "TimedOut" : "Cancelled");
    // A cancellation follows from something: it is no cause itself.
    this.#cause = cause;
  }

  /** What is open at the end of a run ends with it, but for children that outlive it. */
  #close(end: Told, data: Data, seq: number, at: Date): void {
    this.end = { ...end, endedAt: at, ...failureIn(data) };
    if (this.start.state === "Scheduled") Object.assign(this.start, { state: "Cancelled" satisfies NodeState, endedAt: at });
    for (const place of this.#places.values()) {
      const { told } = place;
      if (told === undefined || told.endedAt !== undefined || told.abandoned === true || told.state === undefined) continue;
      told.state = "Cancelled";
      told.endedAt = at;
      place.until = seq;
    }
  }

  // ── places ──

  /** How many nodes it takes at most to show one more effect: it, and what it is the first branch of. */
  #nodesFor(id: EffectId): number {
    let nodes = 1;
    for (let at = id; ; ) {
      const stands = placeOf(at);
      if (stands.kind === "chosen" || stands.kind === "outside") return nodes;
      at = stands.kind === "step" ? stands.path : stands.of;
      const known = this.#places.get(at);
      if (stands.kind !== "step" && stands.kind !== "again" && (known === undefined || !hasNode(known))) nodes += 1;
      if (known !== undefined) return nodes;
    }
  }

  #place(id: EffectId, since: number): Place {
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const stands = placeOf(id);
    const within = this.#within(stands, since);
    const place = newPlace(id, stands, within, since);
    this.#places.set(id, place);
    this.#put(place, within);
    return place;
  }

  #within(stands: EffectPlace, since: number): Place {
    switch (stands.kind) {
      case "step":
        return this.#place(stands.path, since);
      case "branch":
      case "beside":
        return this.#place(stands.of, since);
      case "chosen":
        return this.#generatorAtWork();
      case "again":
        return this.#place(stands.of, since);
      case "outside":
        return this.root;
    }
  }

  #put(place: Place, within: Place): void {
    switch (place.stands.kind) {
      case "step":
        insert(within.steps, place, place.stands.index);
        return;
      case "chosen":
      case "again":
        within.steps.push(place);
        return;
      case "branch":
        this.#makeGroup(within);
        insert(within.branches, place, place.stands.index);
        return;
      case "beside":
        if (!boundsCleanup(place)) this.#makeGroup(within);
        within.beside.push(place);
        return;
      case "outside":
        this.outside.push(place);
        return;
    }
  }

  /** A place with branches is a node, though no fact tells of it. */
  #makeGroup(place: Place): void {
    if (!hasNode(place)) this.#size += 1;
  }

  /** The generator that most likely asks now: the one that what came in belongs to, or one further out when all beside it has ended. */
  #generatorAtWork(): Place {
    let place = this.#cause;
    while (place !== undefined) {
      const { stands, within } = place;
      if (stands.kind === "step" || stands.kind === "chosen") {
        const branch = within as Place;
        if (branch === this.root || branch.stands.kind !== "branch") return branch;
        if (isOpen(branch.within as Place)) return branch;
        place = branch.within;
      } else place = within;
    }
    return this.root;
  }
}

function lost(told: Told, attempts: Mutable<GraphAttempt>[], cause: "crash" | "shutdown", at: Date): void {
  const last = attempts[attempts.length - 1];
  if (last !== undefined) Object.assign(last, { endedAt: at, lost: cause });
  if (cause === "shutdown") {
    told.state = "Scheduled";
    return;
  }
  told.losses += 1;
  const again = told.losses < announcedLosses;
  told.state = again ? "Running" : "Lost";
  if (again && last !== undefined) attempts.push({ number: last.number, startedAt: at });
}

// ── fields of facts, of whatever version ──

function plannedIn({ compensations }: Data): PlannedCompensation[] {
  if (!Array.isArray(compensations)) return [];
  return compensations.map((planned: Partial<PlannedCompensation> | null) => ({
    effect: text(planned?.effect),
    undoes: text(planned?.undoes),
    name: text(planned?.name),
  }));
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** `on:name/3`: the name. */
const handledEvent = ({ effect }: Data): string =>
  text(effect)
    .replace(/^on:/, "")
    .replace(/\/\d+$/, "");

const timeOf = (value: unknown): Date => new Date(value as Date | string | number);

function failureIn({ failure }: Data): { failure?: GraphFailure } {
  if (typeof failure !== "object" || failure === null) return {};
  const { name, message, code } = failure as Partial<Record<keyof GraphFailure, unknown>>;
  return { failure: { name: text(name), message: text(message), ...(typeof code === "string" && { code }) } };
}

const nameIn = (data: Data): string | undefined => failureIn(data).failure?.name;

/** Whether it is about the time to which the start is put off. */
const isStart = ({ effect }: Data): boolean => effect === "start" || text(effect).startsWith("start!");
