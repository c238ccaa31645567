/**
 * A turn that comes alone and writes nothing but its run, as parameters of `wovyr.commit_alone_1`: most turns of an orchestrator that has little to do.
 *
 * 1. It comes to what it would come to in any other flush, in half the time.
 */
import type { Flush, TurnWrite } from "../../engine/ports/store.ts";
import { isClosing } from "../flush-parts.ts";
import { turnProblem } from "../storable.ts";
import type { SqlValue } from "./driver.ts";
import { startSlot } from "./flush-parameters.ts";

const parameterCount = 19;

export const aloneStatement = `select wovyr.commit_alone_1(${Array.from({ length: parameterCount }, (_, at) => `$${at + 1}`).join(",")})`;

/** Undefined for any other flush, and for one that is refused without asking. */
export function aloneParameters({ fence, turns }: Flush): readonly SqlValue[] | undefined {
  const [turn] = turns;
  if (turn === undefined || turns.length > 1 || writesMore(turn)) return undefined;
  const epoch = fence.find(({ shard }) => shard === turn.shard)?.epoch;
  if (epoch === undefined || (turn.create !== undefined && turn.tail !== 0) || turnProblem(turn) !== undefined) return undefined;
  const { shard, tenant, run, tail, count, at, node, nonce, status, busy, events, create } = turn;
  return [
    shard,
    epoch,
    tenant,
    run,
    tail,
    count,
    at,
    node,
    nonce,
    status,
    busy && !isClosing(turn),
    events,
    create?.id ?? null,
    create?.workflow ?? null,
    create?.version ?? null,
    create?.parent === undefined ? null : JSON.stringify(create.parent),
    create?.correlationId ?? null,
    create?.startKey === undefined ? null : startSlot(create.workflow, create.startKey.key),
    create?.startKey?.digest ?? null,
  ];
}

/** A closing turn removes by itself what else its run has, but for what it writes now. */
function writesMore(turn: TurnWrite): boolean {
  const { attributes, children, sends, deadLetters, deadLettersDone, tasks = [], tasksDone = [], outbox = [], successor } = turn;
  if (attributes !== undefined || successor !== undefined) return true;
  if ([children, sends, deadLetters, deadLettersDone, tasks, tasksDone, outbox].some((part) => part.length > 0)) return true;
  return !isClosing(turn) && [turn.timers, turn.timersDone, turn.waits, turn.waitsDone, turn.consumed].some((part) => part.length > 0);
}
