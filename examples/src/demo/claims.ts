/** What the demo claims, checked against what the file of side effects says. */
import type { Entry } from "./ledger.ts";
import { activityNames, type Run } from "./timeline.ts";

export type Claim = { readonly text: string; readonly isTrue: boolean };

export type Evidence = {
  readonly runs: readonly Run[];
  readonly deeds: readonly Entry[];
  readonly killedAt: number;
  readonly firstPid: number;
};

type Step = { readonly name: string; readonly key: string; readonly at: number };

/** Steps whose completion is recorded; their idempotency keys name run and effect. */
function completedSteps(run: Run): Step[] {
  const names = activityNames(run);
  return run.events
    .filter(({ type }) => type === "ActivityCompleted")
    .map(({ at, data }) => ({ name: names.get(data.effect) ?? "", key: `${run.runId}/${data.effect}`, at: at.getTime() }));
}

export function claims({ runs, deeds, killedAt, firstPid }: Evidence): Claim[] {
  const steps = runs.flatMap(completedSteps);
  const before = steps.filter(({ at }) => at <= killedAt);
  const after = steps.filter(({ at }) => at > killedAt);
  const executions = (key: string) => deeds.filter((deed) => deed.key === key && deed.state === "began");
  const interrupted = after.filter(({ key }) => executions(key).some(({ pid }) => pid === firstPid));
  return [
    {
      text: `${before.length} steps completed before the kill, and none of them ran again`,
      isTrue:
        before.length > 0 &&
        before.every(
          ({ key }) =>
            executions(key)
              .map(({ pid }) => pid)
              .join() === String(firstPid),
        ),
    },
    {
      text: `${interrupted.length} step was under way at the kill: it ran again, under the same idempotency key`,
      isTrue: interrupted.length === 1 && interrupted.every(({ key }) => executions(key).length === 2),
    },
    {
      text: `${after.length} steps completed after the kill, each of them once`,
      isTrue:
        after.length > interrupted.length &&
        after.every(({ key }) => deeds.filter((deed) => deed.key === key && deed.state === "done").length === 1),
    },
    {
      text: `the file of side effects holds nothing else: ${steps.length} deeds done`,
      isTrue: deeds.filter(({ state }) => state === "done").length === steps.length,
    },
  ];
}
