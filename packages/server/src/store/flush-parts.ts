/**
 * What of a flush can be judged at once.
 *
 * 1. A first turn that closes its run at once takes an id and frees it again: it and another first turn with that id are judged one after the other, in
 *    parts of their own.
 * 2. A turn with a successor frees an id and takes it again: it is a part of its own.
 */
import { isOpenStatus, type TurnWrite } from "../engine/ports/store.ts";

/** Splits turns into parts to be committed one after another; nearly always one. */
export function flushParts(turns: readonly TurnWrite[]): readonly (readonly TurnWrite[])[] {
  const alone = turns.findIndex((turn) => turn.successor !== undefined);
  if (alone >= 0 && turns.length > 1)
    return [turns.slice(0, alone), turns.slice(alone, alone + 1), turns.slice(alone + 1)].flatMap((part) =>
      part.length === 0 ? [] : flushParts(part),
    );
  if (!turns.some((turn) => turn.create !== undefined && isClosing(turn))) return [turns];
  const parts: (readonly TurnWrite[])[] = [];
  let rest = turns;
  while (rest.length > 0) {
    const taken = new Set<string>();
    const now: TurnWrite[] = [];
    const later: TurnWrite[] = [];
    for (const turn of rest) {
      const id = turn.create && `${turn.tenant}\u001f${turn.create.id}`;
      if (id !== undefined && taken.has(id)) {
        later.push(turn);
        continue;
      }
      if (id !== undefined) taken.add(id);
      now.push(turn);
    }
    parts.push(now);
    rest = later;
  }
  return parts;
}

export function isClosing(turn: TurnWrite): boolean {
  return !isOpenStatus(turn.status);
}
