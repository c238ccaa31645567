/** Places in a history at which a run can be left and another one go on: the ends of turns after which the run was open. */
import { ApiError } from "@wovyr/sdk";
import { type Border, isClosingEvent, type Turn } from "@wovyr/sdk/internal";

/** The number of the last event to keep. Throws NOT_A_BORDER. */
export function borderAt(turns: readonly Turn[], asked: Border): number {
  const borders = bordersOf(turns);
  const [first] = borders;
  const last = borders[borders.length - 1];
  if (first === undefined || last === undefined)
    throw refusal("This run has recorded no turn after which it was open: there is no place to go on from.");
  if (asked === "first") return first;
  if (asked === "last") return last;
  if (borders.includes(asked)) return asked;
  const before = borders.findLast((border) => border < asked);
  const after = borders.find((border) => border > asked);
  const near = [before, after].filter((border) => border !== undefined).join(" and ");
  throw refusal(
    `Event ${asked} is not the last one of a turn after which the run was open; the nearest ${before !== undefined && after !== undefined ? "are" : "is"} ${near}.`,
  );
}

/** In order. */
function bordersOf(turns: readonly Turn[]): number[] {
  const borders: number[] = [];
  let started = false;
  for (const { seq, events } of turns) {
    started ||= events.some(({ type }) => type === "InstanceStarted");
    const closes = events.some(({ type }) => isClosingEvent(type));
    if (started && !closes) borders.push(seq + events.length - 1);
  }
  return borders;
}

const refusal = (message: string) => new ApiError(message, { code: "NOT_A_BORDER" });
