/** The events of one run, recorded ones first, then live, without a gap or a repetition, until it closes. */
import { ApiError } from "@wovyr/sdk";
import { isClosingEvent, type StreamItem, turnView } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { CommittedTurn } from "./event-hub.ts";
import { pause } from "./pause.ts";
import type { InstanceRow } from "./ports/store.ts";

const turnsPerRead = 200;
/** Turns that a slow reader may fall behind; then it reads from the store again. */
const maxBacklog = 1_000;
/** How often the store is looked at for what becomes of a run of another group, in milliseconds: nobody tells it here. */
export const strangerPause = 1_000;

export async function* followRun(
  engine: Engine,
  row: InstanceRow,
  afterSeq: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamItem> {
  const { run } = row;
  const isStranger = row.shard !== engine.shardOf(row.tenant, row.id);
  let live: CommittedTurn[] = [];
  let overflowed = false;
  let ended = false;
  let wake = () => {};
  const unsubscribe = engine.hub.subscribe(run, row.shard, (turn) => {
    if (turn === undefined) ended = true;
    else if (live.length >= maxBacklog) overflowed = true;
    else live.push(turn);
    wake();
  });
  const aborted = () => wake();
  signal?.addEventListener("abort", aborted);
  let next = afterSeq + 1;
  try {
    for (;;) {
      overflowed = false;
      for (;;) {
        const rows = await engine.options.store.readHistory(row, next, turnsPerRead);
        for (const turn of await engine.rows.decodeAll(rows)) {
          for (const event of turnView(turn, next)) {
            if (signal?.aborted === true) return;
            yield { runId: run, event };
            next = event.seq + 1;
            if (isClosingEvent(event.type)) return;
          }
        }
        if (rows.length < turnsPerRead) break;
      }
      const current = await engine.options.store.getInstance(row);
      if (current === undefined || (current.closedAt !== undefined && next > current.tail)) return;
      while (!overflowed) {
        if (signal?.aborted === true) return;
        const turn = live.shift();
        if (turn === undefined && isStranger) {
          await pause(engine.options.clock, strangerPause, signal);
          if (engine.unavailable !== undefined) throw engine.unavailable;
          break;
        }
        if (turn === undefined) {
          if (ended || !engine.ownership.owns(row.shard))
            throw (
              engine.unavailable ?? new ApiError(`Run "${run}" goes on at another orchestrator; follow it there.`, { code: "NOT_OWNER" })
            );
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        for (const event of turnView({ seq: turn.seq, at: turn.at, events: turn.facts }, next)) {
          yield { runId: run, event };
          next = event.seq + 1;
          if (isClosingEvent(event.type)) return;
        }
      }
      live = [];
    }
  } finally {
    unsubscribe();
    signal?.removeEventListener("abort", aborted);
  }
}
