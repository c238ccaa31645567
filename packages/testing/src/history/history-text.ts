/**
 * A history as text that people read and snapshots keep.
 *
 * 1. Two runs of the same workflow with the same inputs give the same text, whenever they ran: times are offsets from the start, generated ids are labels,
 *    and seeds, digests, stacks, nodes and directories are left out. What activities return is what they returned.
 * 2. One line is one event. The first line of a turn begins with its time; `>` is what came in, `<` what the workflow asked for.
 * 3. Nothing else of an event is left out: fields that this file does not know are shown by their names.
 */
import { checkOptions, type HistoryEvent, type HistoryFact, isCommand, type PlannedCompensation } from "@wovyr/sdk/internal";
import { checkEvents, checkFlag, checkWhole } from "../checks.ts";
import { Labels } from "./history-text-labels.ts";
import { lengthText, offsetText, timeOf } from "./history-text-time.ts";
import { cut, defaultBound, type ValueTextOptions, valueText } from "./history-text-value.ts";

export type HistoryTextOptions = {
  /** Whether times are shown, and when retries are due; false for runs in real time, whose times are never the same twice. Default true. */
  readonly times?: boolean;
  /** Characters of a payload after which it is cut; default 200. */
  readonly bound?: number;
};

/** The events of a run as text, one line each. */
export function historyText(events: readonly HistoryEvent[], options: HistoryTextOptions = {}): string {
  checkEvents(events, "historyText()");
  checkOptions(options, ["times", "bound"], "historyText()");
  checkFlag(options.times, "`times` of historyText()");
  checkWhole(options.bound, 1, Number.MAX_SAFE_INTEGER, "`bound` of historyText()");
  return historyLines(events, options).join("\n");
}

/** The lines of `historyText`. */
export function historyLines(events: readonly HistoryEvent[], options: HistoryTextOptions = {}): string[] {
  const { times = true } = options;
  const writer = new EventWriter(events, options);
  const heads = events.map(({ turn, at }, index) => {
    if (index > 0 && events[index - 1]?.turn === turn) return "";
    return times ? offsetText(timeOf(at) - writer.start) : "-";
  });
  const width = Math.max(0, ...heads.map((head) => head.length));
  return events.map((event, index) => `${heads[index]?.padEnd(width)} ${writer.line(event)}`);
}

/** The lines of events as `historyText` has them, without times: for messages. */
export function eventLines(events: readonly HistoryEvent[]): string[] {
  const writer = new EventWriter(events, { bound: 100 });
  return events.map((event) => writer.line(event));
}

const hidden = new Set(["effect", "seed", "digest", "node", "known", "line", "position", "publications"]);
const timestamp = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const sourcePath = /(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][^\s\\/:"'()]+)*[\\/]([^\s\\/:"'()]+\.[cm]?[jt]sx?:\d+(?::\d+)?)/g;
/** Numbers below it are no times of today in milliseconds. */
const leastTime = 1e12;
const century = 36_525 * 86_400_000;

class EventWriter {
  readonly start: number;
  readonly #times: boolean;
  readonly #labels = new Labels();
  /** Times that came from outside and are the same in every run. */
  readonly #given = new Set<number>();
  readonly #values: ValueTextOptions;

  constructor(events: readonly HistoryEvent[], { bound = defaultBound, times = true }: HistoryTextOptions) {
    this.start = timeOf(events[0]?.at);
    this.#times = times;
    for (const { type, data } of events) {
      if (type === "InstanceStarted") for (const field of ["input", "memo", "attributes"]) this.#give(data[field]);
      if (type === "EventReceived") this.#give(data.payload);
    }
    this.#values = {
      bound,
      text: (text) => this.#text(text),
      date: (date) => (this.#relative(date.getTime()) ? `Date(${this.#offset(date)})` : undefined),
      number: (value) => (value >= leastTime && this.#relative(value) ? `time(${this.#offset(value)})` : undefined),
    };
  }

  line({ type, at, data }: HistoryEvent): string {
    const fields = new Fields(data);
    const parts = [isCommand({ type } as HistoryFact) ? "<" : ">", type];
    const effect = fields.take("effect");
    if (effect !== undefined) parts.push(`[${String(effect)}]`);
    parts.push(...this.#known(type, timeOf(at), fields));
    for (const [field, value] of fields.rest()) if (!hidden.has(field)) parts.push(`${field} ${this.#value(value)}`);
    return parts.filter((part) => part !== "").join(" ");
  }

  /** What the events of this version hold, in the order in which it reads best. */
  #known(type: string, at: number, fields: Fields): string[] {
    switch (type) {
      case "InstanceStarted":
        return this.#started(fields);
      case "ActivityScheduled":
        return [this.#word(fields, "name"), this.#value(fields.take("input"))];
      case "ActivityCompleted":
        return [this.#attempt(fields, 2), this.#value(fields.take("output"))];
      case "ActivityFailed":
        return [this.#attempt(fields, 1), this.#failure(fields.take("failure")), this.#retry(at, fields)];
      case "AttemptStarted":
        return [this.#attempt(fields, 1)];
      case "AttemptLost":
        return [this.#attempt(fields, 1), this.#word(fields, "cause")];
      case "TimerStarted":
        return [this.#word(fields, "purpose"), lengthText(timeOf(fields.take("due")) - at)];
      case "TimerFired":
        fields.take("due");
        return [];
      case "EventAwaited":
        return [this.#word(fields, "name"), this.#key(fields)];
      case "EventReceived":
        return [this.#word(fields, "name"), this.#key(fields), this.#value(fields.take("payload")), this.#message(fields)];
      case "ChildStarted":
        return [...this.#begun(fields), `onParentClose ${this.#word(fields, "onParentClose")}`];
      case "ChildCompleted":
      case "InstanceCompleted":
        return [this.#value(fields.take("output"))];
      case "ChildFailed":
        return [this.#word(fields, "status"), this.#failure(fields.take("failure")), this.#notUndone(fields)];
      case "CompensationStarted":
        return [
          this.#word(fields, "order"),
          this.#compensations(fields),
          this.#because(fields),
          `onFailure ${this.#word(fields, "onFailure")}`,
        ];
      case "ActivityDecided":
        return [
          this.#attempt(fields, 1),
          this.#word(fields, "decision"),
          fields.has("output") ? this.#value(fields.take("output")) : "",
          this.#message(fields),
        ];
      case "CompensationDecided":
        return [this.#word(fields, "decision"), this.#message(fields)];
      case "InstanceFailed":
      case "InstanceTimedOut":
      case "InstanceCompensated":
        return [this.#failure(fields.take("failure")), this.#nextAttempt(at, fields)];
      case "ChildRejected":
      case "InstanceCancelled":
      case "InstanceTerminated":
      case "InstanceCompensationFailed":
      case "CompensationFailed":
      case "CompensationStuck":
      case "Parked":
        return [this.#failure(fields.take("failure")), this.#notUndone(fields)];
      case "EventConsumed":
      case "CancelRequested":
      case "TerminateRequested":
      case "PauseRequested":
      case "ResumeRequested":
        return [this.#word(fields, "mode"), this.#message(fields)];
      case "ResetRequested":
        return [`to event ${this.#word(fields, "to")}`, this.#instance(fields), this.#message(fields)];
      case "Forked":
        return this.#forked(fields);
      case "SideEffectRecorded":
        return fields.has("failure") ? [this.#failure(fields.take("failure"))] : [this.#value(fields.take("value"))];
      case "VariablesChanged":
        return [this.#value(fields.take("variables"))];
      case "AttributesChanged":
        return [this.#value(fields.take("attributes"))];
      default:
        return [];
    }
  }

  /** The key of a wait or a publication. */
  #key(fields: Fields): string {
    const key = fields.take("key");
    return key === undefined ? "" : `key ${this.#value(key)}`;
  }

  /** `~1 undoes book [0]`, one after the other. */
  #compensations(fields: Fields): string {
    const planned = fields.take("compensations");
    if (!Array.isArray(planned)) return this.#value(planned);
    const list = (planned as readonly PlannedCompensation[]).map(({ effect, undoes, name }) => `${effect} undoes ${name} [${undoes}]`);
    return cut(list.join(", "), this.#values.bound ?? defaultBound);
  }

  #because(fields: Fields): string {
    const failure = fields.take("failure");
    return failure === undefined ? "" : `because of ${this.#failure(failure)}`;
  }

  #notUndone(fields: Fields): string {
    const compensation = fields.take("compensation");
    return compensation === undefined ? "" : `and ${this.#failure(compensation)}`;
  }

  #forked(fields: Fields): string[] {
    const { id, run } = fields.take("from") as { readonly id: string; readonly run: string };
    const from = id === run ? this.#labels.of("run", run) : `${this.#labels.in(id)} (${this.#labels.of("run", run)})`;
    const children = (fields.take("children") ?? []) as readonly { readonly effect: string; readonly run: string }[];
    fields.take("correlationId");
    return [
      fields.take("reset") === true ? "in the place of" : "from",
      from,
      `at event ${this.#word(fields, "at")}`,
      this.#instance(fields),
      ...children.map((child) => `child [${child.effect}] as ${this.#labels.of("run", child.run)}`),
    ];
  }

  #started(fields: Fields): string[] {
    const correlation = fields.take("correlationId");
    // What the engine chose says nothing: the id, or one that it drew.
    const chosen = typeof correlation === "string" && !fields.is("id", correlation) && this.#labels.in(correlation) === correlation;
    return [...this.#begun(fields), this.#parent(fields), this.#startAt(fields), chosen ? `correlationId ${this.#value(correlation)}` : ""];
  }

  #begun(fields: Fields): string[] {
    const workflow = `${this.#word(fields, "workflow")}@${this.#word(fields, "version")}`;
    return [workflow, this.#value(fields.take("input")), this.#instance(fields)];
  }

  #instance(fields: Fields): string {
    const id = fields.take("id");
    const run = fields.take("run");
    if (typeof run !== "string") return `as ${this.#labels.in(String(id))}`;
    const label = this.#labels.of("run", run);
    return id === run ? `as ${label}` : `as ${this.#labels.in(String(id))} (${label})`;
  }

  #parent(fields: Fields): string {
    const parent = fields.take("parent") as { readonly id: string; readonly run: string; readonly effect: string } | undefined;
    if (parent === undefined) return "";
    return `child of ${parent.id === parent.run ? this.#labels.of("run", parent.run) : this.#labels.in(parent.id)} [${parent.effect}]`;
  }

  #startAt(fields: Fields): string {
    const startAt = fields.take("startAt");
    return startAt === undefined ? "" : `starts at ${this.#offset(startAt)}`;
  }

  #word(fields: Fields, field: string): string {
    const value = fields.take(field);
    return value === undefined ? "" : String(value);
  }

  /** Shown from the given number on. */
  #attempt(fields: Fields, least: number): string {
    const attempt = Number(fields.take("attempt"));
    return attempt >= least ? `attempt ${attempt}` : "";
  }

  #retry(at: number, fields: Fields): string {
    const retryAt = fields.take("retryAt");
    const why = fields.take("noRetry");
    if (fields.take("paused") === true) return `paused (no retry: ${String(why)})`;
    if (retryAt === undefined) return why === undefined ? "(last attempt)" : `(no retry: ${String(why)})`;
    return this.#times ? `retry in ${lengthText(timeOf(retryAt) - at)}` : "retry";
  }

  /** The run that takes the place of this one. */
  #nextAttempt(at: number, fields: Fields): string {
    const run = fields.take("run");
    return typeof run === "string" ? `${this.#retry(at, fields)} as ${this.#labels.of("run", run)}` : "";
  }

  #message(fields: Fields): string {
    return `(${this.#labels.of("message", String(fields.take("message")))})`;
  }

  #failure(failure: unknown): string {
    if (typeof failure !== "object" || failure === null) return this.#value(failure);
    const { name, message, code, fields, thrown, cause } = failure as Readonly<Record<string, unknown>>;
    if (thrown !== undefined) return `thrown ${this.#value(thrown)}`;
    const parts = [`${String(name)} ${this.#value(message)}`];
    if (code !== undefined) parts.push(`(${String(code)})`);
    if (fields !== undefined) parts.push(this.#value(fields));
    if (cause !== undefined) parts.push(`because of ${this.#failure(cause)}`);
    return parts.join(" ");
  }

  #value(value: unknown): string {
    return valueText(value, this.#values);
  }

  #text(text: string): string {
    return this.#labels
      .in(text)
      .replace(timestamp, (time) => (this.#relative(timeOf(time)) ? this.#offset(time) : time))
      .replace(sourcePath, "$1");
  }

  #give(value: unknown): void {
    valueText(value, {
      text: (text) => {
        for (const [time] of text.matchAll(timestamp)) this.#given.add(timeOf(time));
        return text;
      },
      date: (date) => void this.#given.add(date.getTime()),
      number: (number) => void this.#given.add(number),
    });
  }

  /** Whether a time is one that the run made of its clock. */
  #relative(time: number): boolean {
    return Number.isInteger(time) && time >= this.start && time < this.start + century && !this.#given.has(time);
  }

  #offset(time: unknown): string {
    return offsetText(timeOf(time) - this.start);
  }
}

/** The fields of an event that have not been shown. */
class Fields {
  readonly #left: Map<string, unknown>;

  constructor(data: Readonly<Record<string, unknown>>) {
    this.#left = new Map(Object.entries(data));
  }

  has(field: string): boolean {
    return this.#left.has(field);
  }

  is(field: string, value: unknown): boolean {
    return this.#left.get(field) === value;
  }

  take(field: string): unknown {
    const value = this.#left.get(field);
    this.#left.delete(field);
    return value;
  }

  rest(): Iterable<[string, unknown]> {
    return this.#left;
  }
}
