/** The report, as Markdown. */
import { type Measure, measures } from "./measures.ts";
import type { Peer } from "./peers.ts";
import type { Results } from "./results.ts";

export type Report = {
  readonly peers: readonly Peer[];
  readonly results: Results;
  readonly rounds: number;
  /** Of the machine and of what ran on it. */
  readonly about: readonly string[];
  readonly versions: ReadonlyMap<Peer, string>;
};

const notMeasured = [
  "a network between the parts, and more than one machine or orchestrator process",
  "payloads of more than a few bytes, and steps that do anything",
  "hours of operation: databases are new, so that autovacuum, checkpoints and the peers' clean-up play no part",
  "memory",
  "what else each of them offers, and what each promises: DBOS begins the runs of a dead process again at its next start without looking whether it is dead",
];

export function markdownOf(report: Report): string {
  return [
    "# Benchmarks against other engines",
    "",
    `The same workloads on each, ${report.rounds === 1 ? "one round" : `${report.rounds} rounds in turns`}, each with a new process and a new database: medians (least – most). Made by`,
    "`npm run bench:peers`; [bench/peers](../bench/peers/README.md) says how.",
    "",
    ...report.about.map((line) => `- ${line}`),
    "",
    "## Figures",
    "",
    ...figures(report),
    "",
    "## How many times as good Wovyr is",
    "",
    "Wovyr in process against each, and against the best of them in this row; more than 1 is better.",
    "",
    ...ratios(report),
    "",
    "## What was run",
    "",
    ...report.peers.map((peer) => `- **${peer.title}** (${report.versions.get(peer) ?? ""}): ${peer.settings}.`),
    "",
    "Not measured:",
    "",
    ...notMeasured.map((line, at) => `- ${line}${at === notMeasured.length - 1 ? "." : ";"}`),
    "",
  ].join("\n");
}

function figures({ peers, results }: Report): string[] {
  const reasons: string[] = [];
  const mark = (peer: Peer, reason: string): string => {
    const text = `${peer.title}: ${reason}`;
    if (!reasons.includes(text)) reasons.push(text);
    return `[${reasons.indexOf(text) + 1}]`;
  };
  const cell = (peer: Peer, { name }: Measure): string => {
    const values = results.valuesOf(peer, name);
    const failure = results.failureOf(peer, name);
    const why = failure === undefined ? "" : ` ${mark(peer, failure)}`;
    if (values.length === 0) return `–${why}`;
    const range = values.length > 1 ? ` (${format(Math.min(...values))} – ${format(Math.max(...values))})` : "";
    return `${format(results.medianOf(peer, name) as number)}${range}${why}`;
  };
  const rows = measures.map((measure) => [`${measure.title}, ${measure.unit}`, ...peers.map((peer) => cell(peer, measure))]);
  const table = tableOf(["", ...peers.map(({ title }) => title)], rows);
  return [...table, ...(reasons.length === 0 ? [] : ["", ...reasons.map((reason, at) => `[${at + 1}] ${oneLine(reason)}  `)])];
}

function ratios({ peers, results }: Report): string[] {
  const ours = peers.find((peer) => peer.name === "wovyr");
  const others = peers.filter((peer) => !peer.ours);
  if (ours === undefined || others.length === 0) return ["Wovyr or the others were not run."];
  const rows = measures.map((measure) => {
    const times = others.map((other) => results.timesAsGood(ours, other, measure));
    const known = times.filter((value) => value !== undefined);
    const best = known.length === 0 ? undefined : Math.min(...known);
    const timesOf = (name: string) => times[others.findIndex((other) => other.name === name)];
    return [
      measure.title,
      ...[...times, best].map((value) => (value === undefined ? "–" : `${format(value)} ×`)),
      reachOf(measure, results.medianOf(ours, measure.name), best, timesOf),
    ];
  });
  return tableOf(["", ...others.map(({ title }) => title), "the best", "to be reached"], rows);
}

type TimesOf = (peer: string) => number | undefined;

function reachOf({ reach, unit }: Measure, value: number | undefined, best: number | undefined, timesOf: TimesOf): string {
  if (reach === undefined) return "";
  if ("atMost" in reach) return verdict(`≤ ${reach.atMost} ${unit}`, value === undefined ? undefined : value <= reach.atMost);
  if ("thanBest" in reach) return verdict(`≥ ${reach.times} × the best`, atLeast(best, reach.times));
  const goals = [atLeast(timesOf(reach.than), reach.times), atLeast(best, reach.timesBest)];
  const reached = goals.includes(false) ? false : goals.includes(undefined) ? undefined : true;
  return verdict(`≥ ${reach.times} × DBOS, ≥ ${reach.timesBest} × the best`, reached);
}

const atLeast = (value: number | undefined, least: number) => (value === undefined ? undefined : value >= least);

const verdict = (text: string, reached: boolean | undefined) => `${text} ${reached === undefined ? "?" : reached ? "✓" : "✗"}`;

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? "---" : "---:"))), ...rows.map(line)];
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, " ").trim();

function format(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3);
}
