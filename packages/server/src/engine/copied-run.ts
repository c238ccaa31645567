/**
 * Runs whose history begins with what was recorded elsewhere: a fork, a reset, an import.
 *
 * 1. Such a run has one first message, which makes it a run of its own. It takes no other step before that.
 */
import type { HistoryFact, Incoming, Turn } from "@wovyr/sdk/internal";
import type { InstanceRow } from "./ports/store.ts";

/** Whether it is the first message of such a run. */
export const isCopy = (fact: Incoming): boolean => fact.type === "Forked" || fact.type === "Imported";

/** Whether an open run still has to take its first message. */
export function awaitsCopy({ origin, run, closedAt }: InstanceRow, turns: readonly Turn[]): boolean {
  if (origin === undefined || closedAt !== undefined) return false;
  const { importedAt } = origin;
  const taken = (fact: HistoryFact) =>
    importedAt === undefined ? fact.type === "Forked" && fact.run === run : fact.type === "Imported" && fact.at === importedAt;
  return !turns.some((turn) => turn.events.some(taken));
}
