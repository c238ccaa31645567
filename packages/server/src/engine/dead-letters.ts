/**
 * Work that was given up, and what people decide on it.
 *
 * 1. A dead letter is a row that was written with the commit that gave the work up, and is gone with that of the decision.
 * 2. What a run waits for is decided by a fact in its history, which judges it: of two who decide, one is told what the other said.
 * 3. What no run waits for (a run that ended, an event that reached nobody) is done anew under a key of the letter's own, so that it is done once.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type ActivityDecision,
  type CompensationDecision,
  checkName,
  type DeadLetterDecision,
  type DeadLetterDetails,
  type DeadLetterRequest,
  type DeadLetterSummary,
  type Delivered,
  deadLetterKinds,
  decodePayload,
  digest,
  encodePayload,
  type Failure,
  type HistoryFact,
  type Operations,
  type Page,
  possibleDecisions,
  type SendInput,
  type Turn,
  viewOfFailure,
} from "@wovyr/sdk/internal";
import { cursorAfterLetter, letterOfCursor } from "./cursor.ts";
import { type DeadLetterPlace, deadLetterId, placeOfDeadLetter } from "./dead-letter-id.ts";
import { type Ending, endingOf } from "./ending-of.ts";
import type { Engine } from "./engine.ts";
import type { Messages } from "./messages.ts";
import type { DeadLetter, DeadLetterFilter, DeadLetterPage, InstanceRow } from "./ports/store.ts";
import { bounded } from "./reading.ts";
import type { Tenancy } from "./tenancy.ts";

const maxPage = 500;
const defaultPage = 50;
const maxPagesRead = 20;
/** Failed attempts that are shown. */
const shownFailures = 20;

export type DecisionOptions = { readonly output?: unknown; readonly note?: string; readonly idempotencyKey?: string };

/** Why a run does not take a decision: it was taken before, or the work is over. */
const overdue: ReadonlySet<string> = new Set([
  "DEAD_LETTER_DECIDED",
  "INSTANCE_CLOSED",
  "COMPENSATION_NOT_FOUND",
  "COMPENSATION_NOT_STUCK",
]);

const ofActivity: Readonly<Partial<Record<DeadLetterDecision, ActivityDecision>>> = { retry: "retry", resolve: "resolve", fail: "fail" };
/** Whoever waits for an undoing learns that it failed, when it is given up. */
const ofCompensation: Readonly<Partial<Record<DeadLetterDecision, CompensationDecision>>> = {
  retry: "retry",
  resolve: "resolve",
  fail: "skip",
};

export class DeadLetters {
  readonly #tenancy: Tenancy;
  readonly #messages: Messages;
  readonly #anywhere: () => Pick<Operations, "start" | "sendEvent">;

  /** `anywhere` reaches other runs than those that letters are of. */
  constructor(tenancy: Tenancy, messages: Messages, anywhere: () => Pick<Operations, "start" | "sendEvent">) {
    this.#tenancy = tenancy;
    this.#messages = messages;
    this.#anywhere = anywhere;
  }

  async list(request: DeadLetterRequest = {}): Promise<Page<DeadLetterSummary>> {
    const engine = this.#tenancy.engine();
    const limit = bounded(request.limit ?? defaultPage, maxPage, "limit");
    const since = request.since?.getTime() ?? Number.NEGATIVE_INFINITY;
    const filter = storeFilterOf(request);
    const items: DeadLetterSummary[] = [];
    let after = placeOf(request);
    for (let pages = 1; ; pages += 1) {
      const letters = await engine.options.store.listDeadLetters(this.#tenancy.tenant, filter, {
        limit,
        ...(after !== undefined && { after }),
      });
      for (const letter of letters) {
        if (letter.at < since) return { items };
        after = letter;
        const summary = await this.#summary(engine, letter);
        if (request.code === undefined || hasCode(summary.failure, request.code)) items.push(summary);
        if (items.length === limit) return { items, nextCursor: cursorAfterLetter(letter) };
      }
      if (letters.length < limit) return { items };
      // Few of them have this code: the caller goes on from here.
      if (pages === maxPagesRead && after !== undefined) return { items, nextCursor: cursorAfterLetter(after) };
    }
  }

  async get(id: string): Promise<DeadLetterDetails> {
    const engine = this.#tenancy.engine();
    const { place, row } = await this.#find(engine, id);
    const turns = await this.#tenancy.turns(engine, row);
    const letter = await this.#letter(engine, place, row, turns);
    if (letter === undefined) throw explained(id, endingOf(place, turns));
    const failures = failuresOf(letter, turns);
    return {
      ...(await this.#summary(engine, letter)),
      version: row.version,
      ...inputOf(letter, turns),
      failures: failures.slice(-shownFailures),
      firstFailedAt: failures[0]?.at ?? new Date(letter.at),
      lastFailedAt: failures[failures.length - 1]?.at ?? new Date(letter.at),
    };
  }

  async decide(id: string, decision: DeadLetterDecision, options: DecisionOptions = {}): Promise<Delivered> {
    const engine = this.#tenancy.acting();
    const { place, row } = await this.#find(engine, id);
    const { kind } = place;
    if (!possibleDecisions[kind].includes(decision))
      throw new ApiError(
        `A dead letter of kind "${kind}" cannot be decided by "${decision}"; it can be by ${possibleDecisions[kind].join(", ")}.`,
        {
          code: "DECISION_NOT_POSSIBLE",
        },
      );
    if (kind === "activity" || kind === "compensation") return this.#tell(engine, id, place, row, decision, options);
    return oneByOne(engine.deciding, `${this.#tenancy.tenant} ${id}`, () => this.#decideAlone(engine, id, place, row, decision, options));
  }

  /** What no run waits for: no history judges the decision. */
  async #decideAlone(
    engine: Engine,
    id: string,
    place: DeadLetterPlace,
    row: InstanceRow,
    decision: DeadLetterDecision,
    options: DecisionOptions,
  ): Promise<Delivered> {
    const turns = await this.#tenancy.turns(engine, row);
    const letter = await this.#letter(engine, place, row, turns);
    if (letter === undefined) throw explained(id, endingOf(place, turns));
    if (decision === "retry") await this.#again(engine, id, letter, row);
    await engine.options.store.dropDeadLetters([{ ...letter, shard: row.shard }]);
    const { note } = options;
    engine.options.log.info(`a dead letter was decided on: ${decision}`, {
      deadLetter: id,
      workflow: letter.workflow,
      instance: letter.id,
      run: letter.run,
      ...(note !== undefined && { note }),
    });
    return { replayed: false };
  }

  /** The run that the letter is of. Throws DEAD_LETTER_NOT_FOUND. */
  async #find(engine: Engine, id: string): Promise<{ readonly place: DeadLetterPlace; readonly row: InstanceRow }> {
    const place = placeOfDeadLetter(id);
    const row = place && (await engine.options.store.getInstance({ tenant: this.#tenancy.tenant, run: place.run, shard: undefined }));
    if (place === undefined || row === undefined) throw unknown(id);
    return { place, row };
  }

  async #letter(engine: Engine, place: DeadLetterPlace, row: InstanceRow, turns: readonly Turn[]): Promise<DeadLetter | undefined> {
    const effect = place.effect ?? effectIn(place, turns);
    const { tenant, run, shard } = row;
    const letter = effect === undefined ? undefined : await engine.options.store.getDeadLetter({ tenant, run, shard, effect });
    return letter?.kind === place.kind && letter.attempts === place.attempts ? letter : undefined;
  }

  async #summary(engine: Engine, letter: DeadLetter): Promise<DeadLetterSummary> {
    const { kind, workflow, id, run, effect, name, attempts, at } = letter;
    return {
      id: deadLetterId(letter),
      kind,
      workflow,
      instanceId: id,
      runId: run,
      effect,
      name,
      attempts,
      failure: viewOfFailure(await engine.rows.decodeFailure(letter.failure)),
      at: new Date(at),
      decisions: possibleDecisions[kind],
    };
  }

  /** A run waits for the decision: it is told. */
  async #tell(
    engine: Engine,
    id: string,
    place: DeadLetterPlace,
    row: InstanceRow,
    decision: DeadLetterDecision,
    { output, note, idempotencyKey }: DecisionOptions,
  ): Promise<Delivered> {
    const about = { runId: row.run, ...(note !== undefined && { note }), ...(idempotencyKey !== undefined && { idempotencyKey }) };
    const history = () => this.#tenancy.turns(engine, row);
    const effect = place.effect ?? effectIn(place, await history());
    if (effect === undefined) throw unknown(id);
    try {
      if (place.kind === "activity") {
        const said = decision === "resolve" ? resolvedWith(output, engine.options.limits.execution.payload) : {};
        return await this.#messages.decideActivity(
          row.id,
          { effect, attempt: place.attempts, ...said },
          ofActivity[decision] as ActivityDecision,
          about,
        );
      }
      const stuck = await engine.options.store.getDeadLetter({ tenant: row.tenant, run: row.run, shard: row.shard, effect });
      // It was tried anew since, and is stuck once more: that is another letter.
      if (stuck !== undefined && stuck.attempts !== place.attempts) {
        const ending = endingOf(place, await history());
        if (idempotencyKey !== undefined && ending?.message === idempotencyKey) return { replayed: true };
        throw explained(id, ending);
      }
      return await this.#messages.decideCompensation(row.id, effect, ofCompensation[decision] as CompensationDecision, about);
    } catch (error) {
      if (!(error instanceof WovyrError) || !overdue.has(error.code)) throw error;
      throw explained(id, endingOf(place, await history()));
    }
  }

  /** Nobody waits for it: it is done anew. */
  async #again(engine: Engine, id: string, letter: DeadLetter, row: InstanceRow): Promise<void> {
    const turns = await this.#tenancy.turns(engine, row);
    if (letter.kind === "event") {
      const { to, event, payload } = inputOf(letter, turns).input as SendInput;
      await this.#anywhere().sendEvent(to, event, payload, { idempotencyKey: `${letter.run}/${letter.effect}` });
      return;
    }
    const start = turns.flatMap(({ events }) => events).find((fact) => fact.type === "InstanceStarted");
    if (start === undefined) throw unknown(id);
    const { workflow, input, memo, attributes, correlationId, timeout } = start;
    await this.#anywhere().start({
      workflow,
      input: decodePayload(input),
      id: row.id,
      ...(memo !== undefined && { memo: decodePayload(memo) as Record<string, unknown> }),
      ...(attributes !== undefined && { attributes: decodePayload(attributes) as Record<string, string> }),
      ...(correlationId !== undefined && { correlationId }),
      ...(timeout !== undefined && { timeout }),
      idempotencyKey: `dead-letter:${letter.run}`,
    });
  }
}

/** Of those who decide on one letter at once the first is heard, and the others are told so. */
async function oneByOne<T>(deciding: Map<string, Promise<void>>, letter: string, decide: () => Promise<T>): Promise<T> {
  const decided = (deciding.get(letter) ?? Promise.resolve()).then(decide);
  const over = decided.then(
    () => {},
    () => {},
  );
  deciding.set(letter, over);
  try {
    return await decided;
  } finally {
    if (deciding.get(letter) === over) deciding.delete(letter);
  }
}

export function storeFilterOf({ kind, workflow, name, instanceId }: DeadLetterRequest): DeadLetterFilter {
  if (kind !== undefined && !deadLetterKinds.includes(kind))
    throw new ApiError(`There are no dead letters of kind "${String(kind)}"; the kinds are ${deadLetterKinds.join(", ")}.`, {
      code: "INVALID_OPTION",
    });
  for (const [what, text] of Object.entries({ workflow, name, instanceId })) if (text !== undefined) checkName(text, what);
  return {
    ...(kind !== undefined && { kind }),
    ...(workflow !== undefined && { workflow }),
    ...(name !== undefined && { name }),
    ...(instanceId !== undefined && { id: instanceId }),
  };
}

/** After which letter the list begins: those before `until`, or after the page before. */
function placeOf({ cursor, until }: DeadLetterRequest): DeadLetterPage["after"] {
  if (cursor !== undefined) return letterOfCursor(cursor);
  return until === undefined ? undefined : { at: until.getTime(), run: "", effect: "" };
}

function hasCode({ code, cause }: DeadLetterSummary["failure"], wanted: string): boolean {
  return code === wanted || (cause !== undefined && hasCode(cause, wanted));
}

function resolvedWith(value: unknown, limit: number): { readonly output: string; readonly said: string } {
  const output = encodePayload(value, { limit, what: "the output" });
  return { output, said: digest(value) };
}

function factsOf(turns: readonly Turn[]): readonly { readonly fact: HistoryFact; readonly at: number; readonly seq: number }[] {
  return turns.flatMap(({ seq, at, events }) => events.map((fact, index) => ({ fact, at, seq: seq + index })));
}

function effectIn(place: DeadLetterPlace, turns: readonly Turn[]): string | undefined {
  for (const { fact } of factsOf(turns)) if ("effect" in fact && place.isEffect(fact.effect)) return fact.effect;
  return undefined;
}

/** What the work was given: its input, and where that stands in history. */
function inputOf({ kind, effect }: DeadLetter, turns: readonly Turn[]): { readonly input?: unknown; readonly seq?: number } {
  for (const { fact, seq } of factsOf(turns)) {
    const isIt = kind === "workflow" ? fact.type === "InstanceStarted" : fact.type === "ActivityScheduled" && fact.effect === effect;
    if (isIt) return { input: decodePayload((fact as { readonly input: string }).input), seq };
  }
  return {};
}

type FailedAttempt = DeadLetterDetails["failures"][number];

function failuresOf({ effect }: DeadLetter, turns: readonly Turn[]): FailedAttempt[] {
  const failures: FailedAttempt[] = [];
  let tries = 0;
  const add = (attempt: number, at: number, failure: Failure) =>
    failures.push({ attempt, at: new Date(at), failure: viewOfFailure(failure) });
  for (const { fact, at } of factsOf(turns)) {
    if (fact.type === "ActivityFailed" && fact.effect === effect) add(fact.attempt, at, fact.failure);
    if (fact.type === "CompensationStuck" && fact.effect === effect) add(++tries, at, fact.failure);
  }
  return failures;
}

const unknown = (id: string) => new ApiError(`There is no dead letter "${id}".`, { code: "DEAD_LETTER_NOT_FOUND" });

/** Why a letter that is not there any more cannot be decided on. */
function explained(id: string, ending: Ending | undefined): ApiError {
  if (ending === undefined) return unknown(id);
  const { decision, note, at, untold } = ending;
  const said = note === undefined ? "" : ` ("${note}")`;
  const when = new Date(at).toISOString();
  const what =
    decision !== undefined
      ? `somebody decided "${decision}"${said} at ${when}`
      : untold === true
        ? "it was decided on before"
        : `nobody waits for it any more, since ${when}`;
  return new ApiError(`Dead letter "${id}" cannot be decided on: ${what}.`, { code: "DEAD_LETTER_DECIDED" });
}
