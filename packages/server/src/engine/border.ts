/**
 * Places in a history at which a run can be left and another one go on: the ends of turns after which the run was open.
 *
 * 1. `first` and `last` are of those before the run began to undo what it did: what is undone must not be taken for done. Later ones can be asked for by number.
 */
import { ApiError } from "@wovyr/sdk";
import { type Border, type HistoryFact, isClosingEvent, ofRun, type Turn } from "@wovyr/sdk/internal";

type Borders = {
  /** All of them, in order. */
  readonly all: readonly number[];
  readonly beforeUnwinding: readonly number[];
};

/** The number of the last event to keep. Throws NOT_A_BORDER. */
export function borderAt(turns: readonly Turn[], asked: Border): number {
  const { all, beforeUnwinding } = bordersOf(turns);
  if (all.length === 0) throw refusal("This run has recorded no turn after which it was open: there is no place to go on from.");
  if (asked === "first" || asked === "last") {
    const border = beforeUnwinding.at(asked === "first" ? 0 : -1);
    if (border !== undefined) return border;
    throw refusal(
      `This run undid what it had done from its first turn on: there is no place before that. Within its compensation the first place is event ${all[0]}, the last one event ${all.at(-1)}; ask for one of those by its number.`,
    );
  }
  if (all.includes(asked)) return asked;
  const before = all.findLast((border) => border < asked);
  const after = all.find((border) => border > asked);
  const near = [before, after].filter((border) => border !== undefined).join(" and ");
  throw refusal(
    `Event ${asked} is not the last one of a turn after which the run was open; the nearest ${before !== undefined && after !== undefined ? "are" : "is"} ${near}.`,
  );
}

function bordersOf(turns: readonly Turn[]): Borders {
  const all: number[] = [];
  const beforeUnwinding: number[] = [];
  let started = false;
  let unwinding = false;
  for (const { seq, events } of turns) {
    started ||= events.some(({ type }) => type === "InstanceStarted");
    unwinding ||= events.some(undoesTheRun);
    if (!started || events.some(({ type }) => isClosingEvent(type))) continue;
    const border = seq + events.length - 1;
    all.push(border);
    if (!unwinding) beforeUnwinding.push(border);
  }
  return { all, beforeUnwinding };
}

const undoesTheRun = (fact: HistoryFact) => fact.type === "CompensationStarted" && fact.effect === ofRun;

const refusal = (message: string) => new ApiError(message, { code: "NOT_A_BORDER" });
