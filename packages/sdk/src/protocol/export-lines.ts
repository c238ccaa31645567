/**
 * Runs as lines of JSON: a header, then a line for each turn of its history, then one for each message that is kept for it. Several runs follow each other.
 *
 * 1. Facts are as the store has them: payloads are text that `decodePayload` reads, or what a payload codec made of it.
 * 2. What is read is checked: shapes, numbers, and that the facts of a run fold into a state. A refusal names the line.
 */
import { WovyrError } from "../model/errors.ts";
import { misshapenFact, storedForm } from "../model/fact-shape.ts";
import type { HistoryFact, Incoming, ParentLink, Turn } from "../model/history.ts";
import { foldHistory, type InstanceState } from "../model/instance-state.ts";
import { isName } from "../model/name.ts";
import { isCommand } from "../runtime/recorder.ts";

export const exportFormat = "wovyr-instance/1";

export type ExportHeader = {
  readonly format: typeof exportFormat;
  readonly id: string;
  readonly run: string;
  readonly workflow: string;
  readonly version: string;
  /** As it is stored: `open`, `parked`, `paused`, `compensating`, or how it ended. */
  readonly status: string;
  /** Number of events. */
  readonly tail: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly closedAt?: number;
  readonly parent?: ParentLink;
  readonly correlationId?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly origin?: { readonly from?: { readonly id: string; readonly run: string; readonly at: number; readonly reset?: true } };
};

export type ExportedMessage = { readonly message: string; readonly fact: Incoming };

export type ExportedRun = {
  readonly header: ExportHeader;
  readonly turns: readonly Turn[];
  readonly inbox: readonly ExportedMessage[];
  /** What the history says, payloads as they are stored. */
  readonly state: InstanceState;
};

/** Throws INVALID_EXPORT, or what reading the lines throws. */
export async function* exportedRuns(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<ExportedRun> {
  let open: Reading | undefined;
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    const value = parsed(line, number);
    if ("format" in value) {
      if (open !== undefined) yield open.end();
      open = new Reading(headerOf(value, number), number);
    } else if (open === undefined) throw refusal(number, `begins with neither a header of format "${exportFormat}" nor anything after one`);
    else open.add(value, number);
  }
  if (open !== undefined) yield open.end();
}

type Fields = Readonly<Record<string, unknown>>;

function parsed(line: string, number: number): Fields {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw refusal(number, `is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (isObject(value) && !Array.isArray(value)) return value;
  throw refusal(number, "is no JSON object");
}

class Reading {
  readonly #header: ExportHeader;
  readonly #line: number;
  readonly #turns: Turn[] = [];
  readonly #inbox: ExportedMessage[] = [];
  #tail = 0;

  constructor(header: ExportHeader, line: number) {
    this.#header = header;
    this.#line = line;
  }

  add(value: Fields, line: number): void {
    if ("seq" in value) this.#turn(value, line);
    else if ("message" in value) this.#message(value, line);
    else throw refusal(line, "is neither a header, nor a turn (`seq`), nor a message (`message`)");
  }

  #turn({ seq, at, node, events }: Fields, line: number): void {
    if (this.#inbox.length > 0) throw refusal(line, "is a turn after messages; turns come first");
    if (seq !== this.#tail + 1)
      throw refusal(line, `begins at event ${String(seq)} where ${this.#tail + 1} belongs; a history leaves nothing out`);
    if (!isWhole(at)) throw refusal(line, "has no proper `at`");
    if (typeof node !== "string") throw refusal(line, "has no proper `node`");
    if (!Array.isArray(events) || events.length === 0) throw refusal(line, "has no events");
    for (const [index, fact] of events.entries()) {
      const problem = factProblem(fact);
      if (problem !== undefined) throw refusal(line, `holds an event ${this.#tail + 1 + index} that ${problem}`);
    }
    this.#turns.push({ seq, at, node, events: events as HistoryFact[] });
    this.#tail += events.length;
  }

  #message({ message, fact }: Fields, line: number): void {
    if (typeof message !== "string" || message === "") throw refusal(line, "has no proper `message`");
    const problem = factProblem(fact);
    if (problem !== undefined) throw refusal(line, `holds a fact that ${problem}`);
    if (isCommand(fact as HistoryFact)) throw refusal(line, "holds a fact that is no message to a run");
    this.#inbox.push({ message, fact: fact as Incoming });
  }

  end(): ExportedRun {
    const header = this.#header;
    if (header.tail !== this.#tail)
      throw refusal(this.#line, `says that its run has ${header.tail} events, and ${this.#tail} follow: is the end missing?`);
    const state = this.#folded();
    if (state.start !== undefined && state.start.workflow !== header.workflow)
      throw refusal(this.#line, `says workflow "${header.workflow}", and its history "${state.start.workflow}"`);
    if (state.closed !== (header.closedAt !== undefined))
      throw refusal(this.#line, `${header.closedAt === undefined ? "has no" : "has a"} \`closedAt\`, and its history says otherwise`);
    return { header, turns: this.#turns, inbox: this.#inbox, state };
  }

  #folded(): InstanceState {
    try {
      return foldHistory(this.#turns);
    } catch (error) {
      throw refusal(
        this.#line,
        `is followed by events that contradict each other: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
}

function factProblem(fact: unknown): string | undefined {
  if (!isObject(fact) || typeof fact.type !== "string") return "has no type";
  return misshapenFact(fact.type, fact, storedForm);
}

// ── the header ──

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isOptionalName = (value: unknown) => value === undefined || isName(value);
const isParent = (value: unknown) =>
  value === undefined ||
  (isObject(value) && typeof value.tenant === "string" && isName(value.id) && isName(value.run) && typeof value.effect === "string");
const isOrigin = (value: unknown) =>
  value === undefined ||
  (isObject(value) &&
    (value.from === undefined || (isObject(value.from) && isName(value.from.id) && isName(value.from.run) && isWhole(value.from.at))));

const headerChecks: Readonly<Record<Exclude<keyof ExportHeader, "format">, (value: unknown) => boolean>> = {
  id: isName,
  run: isName,
  workflow: isName,
  version: isName,
  status: (value) => typeof value === "string",
  tail: isWhole,
  createdAt: isWhole,
  closedAt: (value) => value === undefined || isWhole(value),
  parent: isParent,
  correlationId: isOptionalName,
  attributes: isObject,
  origin: isOrigin,
};

function headerOf(value: Fields, line: number): ExportHeader {
  if (value.format !== exportFormat)
    throw refusal(line, `is of format ${JSON.stringify(value.format)}; this version of Wovyr reads "${exportFormat}"`);
  for (const [field, check] of Object.entries(headerChecks)) if (!check(value[field])) throw refusal(line, `has no proper \`${field}\``);
  return value as ExportHeader;
}

const refusal = (line: number, problem: string) =>
  new WovyrError(`This is no export of runs: line ${line} ${problem}.`, { code: "INVALID_EXPORT" });
