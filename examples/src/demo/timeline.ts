/** What happened, told from the histories of the runs. */
import type { HistoryEvent } from "@wovyr/sdk/client";
import { match, P } from "ts-pattern";
import { bold, cyan, dim, green, red, yellow } from "./paint.ts";

export type Run = { readonly id: string; readonly runId: string; readonly events: readonly HistoryEvent[] };
type Told = { readonly at: number; readonly id: string; readonly text: string };

/** Names of activities by effect: completions carry the effect only. */
export function activityNames({ events }: Run): ReadonlyMap<unknown, string> {
  const scheduled = events.filter(({ type }) => type === "ActivityScheduled");
  return new Map(scheduled.map(({ data }) => [data.effect, String(data.name)]));
}

function sentence({ type, data }: HistoryEvent, names: ReadonlyMap<unknown, string>, lost: ReadonlySet<unknown>): string | undefined {
  const name = bold(names.get(data.effect) ?? "");
  const again = lost.has(data.effect) ? yellow(" (run again)") : "";
  return match({ type, ...data } as Readonly<Record<string, unknown>>)
    .with({ type: "InstanceStarted" }, ({ parent }) => (parent === undefined ? "starts" : dim("starts, as a child")))
    .with({ type: "ActivityCompleted" }, () => `${green("✓")} ${name}${again}`)
    .with({ type: "AttemptLost" }, () => `${yellow("↯")} ${name} ${yellow("was under way when its process died")}`)
    .with({ type: "EventAwaited" }, (event) => dim(`waits for ${event.name}`))
    .with({ type: "EventReceived" }, (event) => `${cyan("✉")} ${event.name}`)
    .with({ type: "TimerStarted", purpose: "sleep" }, () => dim("sets a timer"))
    .with({ type: "TimerFired", effect: P.string }, () => `${cyan("⏰")} the timer fires`)
    .with({ type: "InstanceCompleted" }, () => bold(green("Completed")))
    .with({ type: "InstanceFailed" }, () => bold(red("Failed")))
    .otherwise(() => undefined);
}

function tell(run: Run): Told[] {
  const names = activityNames(run);
  const lost = new Set(run.events.filter(({ type }) => type === "AttemptLost").map(({ data }) => data.effect));
  return run.events.flatMap((event) => {
    const text = sentence(event, names, lost);
    return text === undefined ? [] : [{ at: event.at.getTime(), id: run.id, text }];
  });
}

/** Lines of all runs in the order of time, with notes in between. */
export function timeline(runs: readonly Run[], notes: readonly { readonly at: number; readonly text: string }[], origin: number): string[] {
  const width = Math.max(...runs.map(({ id }) => id.length));
  const clock = (at: number) => dim(`${(Math.max(0, at - origin) / 1_000).toFixed(2).padStart(6)} s`);
  const lines = [
    ...runs.flatMap(tell).map(({ at, id, text }) => ({ at, line: `${clock(at)}  ${id.padEnd(width)}  ${text}` })),
    ...notes.map(({ at, text }) => ({ at, line: `${clock(at)}  ${text}` })),
  ];
  return lines.sort((a, b) => a.at - b.at).map(({ line }) => line);
}
