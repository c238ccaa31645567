/**
 * What every provider can keep as text.
 *
 * 1. No text holds U+0000 (Postgres refuses it), U+001F (separates values on their way to the database) or half of a surrogate pair (UTF-8 has no
 *    form for it). JSON text, as `JSON.stringify` makes it, never does: it escapes all three.
 */
import { WovyrError } from "@wovyr/sdk";
import type { Parcel } from "../engine/ports/databases.ts";
import {
  type ChildWrite,
  type DeadLetterWrite,
  type InboxMessage,
  isOpenStatus,
  type NewInstance,
  type Publication,
  type RunImport,
  type TurnWrite,
} from "../engine/ports/store.ts";
import type { TaskWrite } from "../engine/ports/tasks.ts";

export function isStorable(text: string): boolean {
  return !text.includes("\u0000") && !text.includes("\u001f") && text.isWellFormed();
}

/** Refuses a text that no provider can keep; `field` says which. */
export class UnstorableTextError extends WovyrError {
  constructor(field: string) {
    super(`${field} holds a character that cannot be stored: U+0000, U+001F or half of a surrogate pair`, {
      code: "PAYLOAD_UNSERIALIZABLE",
    });
  }
}

/** Why a turn can never be stored, if so. */
export function turnProblem(turn: TurnWrite): UnstorableTextError | undefined {
  const field = badTurnField(turn);
  return field === undefined ? undefined : new UnstorableTextError(field);
}

/** Refuses texts that no provider can keep, by the names of their fields. */
export function checkStorable(fields: Readonly<Record<string, string | undefined>>): void {
  for (const [field, text] of Object.entries(fields)) if (text !== undefined && !isStorable(text)) throw new UnstorableTextError(field);
}

/** Refuses a publication that no provider can keep. */
export function checkPublication({ tenant, id, name, key, digest, fact }: Publication): void {
  checkStorable({ tenant, id, name, key, digest, fact });
}

/** Why a message can never be stored, if so. */
export function messageProblem(message: InboxMessage): UnstorableTextError | undefined {
  const field = badMessageField(message, "message");
  return field === undefined ? undefined : new UnstorableTextError(field);
}

function badTurnField(turn: TurnWrite): string | undefined {
  if (!isStorable(turn.tenant)) return "tenant";
  if (!isStorable(turn.run)) return "run";
  if (!isStorable(turn.node)) return "node";
  if (!isStorable(turn.nonce)) return "nonce";
  if (!isStorable(turn.events)) return "events";
  if (turn.create !== undefined) {
    const field = badInstanceField(turn.create, "create");
    if (field !== undefined) return field;
  }
  for (const timer of turn.timers) if (!isStorable(timer.effect)) return "timers.effect";
  for (const effect of turn.timersDone) if (!isStorable(effect)) return "timersDone";
  for (const message of turn.consumed) if (!isStorable(message)) return "consumed";
  for (const child of turn.children) {
    const field = badChildField(child);
    if (field !== undefined) return field;
  }
  for (const message of turn.sends) {
    const field = badMessageField(message, "sends");
    if (field !== undefined) return field;
  }
  for (const wait of turn.waits) {
    if (!isStorable(wait.effect)) return "waits.effect";
    if (!isStorable(wait.name)) return "waits.name";
    if (wait.key !== undefined && !isStorable(wait.key)) return "waits.key";
  }
  for (const effect of turn.waitsDone) if (!isStorable(effect)) return "waitsDone";
  for (const letter of turn.deadLetters) {
    const field = badLetterField(letter);
    if (field !== undefined) return `deadLetters.${field}`;
  }
  for (const effect of turn.deadLettersDone) if (!isStorable(effect)) return "deadLettersDone";
  for (const task of turn.tasks ?? []) {
    const field = badTaskField(task);
    if (field !== undefined) return `tasks.${field}`;
  }
  for (const effect of turn.tasksDone ?? []) if (!isStorable(effect)) return "tasksDone";
  for (const { name, parcel } of turn.outbox ?? []) {
    const field = isStorable(name) ? badParcelField(parcel) : "name";
    if (field !== undefined) return `outbox.${field}`;
  }
  const field = turn.successor === undefined ? undefined : badImportField(turn.successor);
  return field === undefined ? undefined : `successor.${field}`;
}

function badChildField({ run, instance, start, rejection }: ChildWrite): string | undefined {
  if (!isStorable(run)) return "children.run";
  return (
    badInstanceField(instance, "children.instance") ??
    badMessageField(start, "children.start") ??
    badMessageField(rejection, "children.rejection")
  );
}

function badParcelField(parcel: Parcel): string | undefined {
  if (parcel.kind === "send") return badMessageField(parcel.message, "sends");
  return parcel.kind === "child" ? badChildField(parcel.child) : undefined;
}

/** Refuses a run that no provider can keep. */
export function checkImport(run: RunImport): void {
  const field = badImportField(run);
  if (field !== undefined) throw new UnstorableTextError(field);
}

function badImportField({ row, turns, inbox, startKey }: RunImport): string | undefined {
  const { tenant, run, id, workflow, version, correlationId } = row;
  const texts = { tenant, run, id, workflow, version, correlationId, "startKey.key": startKey?.key, "startKey.digest": startKey?.digest };
  for (const [field, text] of Object.entries(texts)) if (text !== undefined && !isStorable(text)) return field;
  for (const { node, events } of turns) {
    if (!isStorable(node)) return "turns.node";
    if (!isStorable(events)) return "turns.events";
  }
  if (!isOpenStatus(row.status)) return undefined;
  for (const { message, fact } of inbox) if (!isStorable(message) || !isStorable(fact)) return "inbox";
  return undefined;
}

function badTaskField({ requires, startWithin, closeWithin, runWithin, beatWithin, attempt, losses, priority, ...texts }: TaskWrite) {
  const field = Object.entries(texts).find(([, text]) => text !== undefined && !isStorable(text))?.[0];
  return field ?? (requires.every(isStorable) ? undefined : "requires");
}

function badLetterField({ effect, name, failure }: DeadLetterWrite): string | undefined {
  if (!isStorable(effect)) return "effect";
  if (!isStorable(name)) return "name";
  return isStorable(failure) ? undefined : "failure";
}

function badInstanceField(instance: NewInstance, path: string): string | undefined {
  if (!isStorable(instance.id)) return `${path}.id`;
  if (!isStorable(instance.workflow)) return `${path}.workflow`;
  if (!isStorable(instance.version)) return `${path}.version`;
  if (instance.correlationId !== undefined && !isStorable(instance.correlationId)) return `${path}.correlationId`;
  if (instance.startKey !== undefined && !isStorable(instance.startKey.key)) return `${path}.startKey.key`;
  if (instance.startKey !== undefined && !isStorable(instance.startKey.digest)) return `${path}.startKey.digest`;
  return undefined;
}

function badMessageField(message: InboxMessage, path: string): string | undefined {
  if (!isStorable(message.tenant)) return `${path}.tenant`;
  if (!isStorable(message.run)) return `${path}.run`;
  if (!isStorable(message.message)) return `${path}.message`;
  if (!isStorable(message.fact)) return `${path}.fact`;
  return undefined;
}
