/**
 * What came of checking histories, for programs and for a person at three in the morning.
 *
 * 1. It is ok when every history that was looked at replays; one that could not be looked at is a problem, and never left out in silence.
 * 2. The text shows each divergence once, with the runs that share it, and is bounded.
 */

export type Divergence = {
  /** Number of the event at which code and history part. */
  readonly seq: number;
  /** What history holds there. */
  readonly expected: string;
  /** What the code asks for now. */
  readonly got: string;
  /** `file:line:column` of the yield that asks for it; where the code asks for nothing or ends, of the yield that it waits at or that was its last. */
  readonly at?: string;
  /** Whether the line at `at` is the one that asks. */
  readonly asked?: boolean;
  /** The two sequences of effects, `- ` recorded and `+ ` asked for now. */
  readonly diff: string;
  /** What else may be the reason. */
  readonly note?: string;
};

/** Why a history could not be replayed, other than by a divergence. */
export type ReplayProblem = {
  readonly message: string;
  /** `file:line:column` of the code to blame, where there is one. */
  readonly at?: string;
};

export type RunReport = {
  /** Where the history comes from: a file, an instance, the events that were given. */
  readonly source: string;
  readonly workflow?: string;
  readonly version?: string;
  readonly id?: string;
  readonly runId?: string;
  /** Events in history. */
  readonly events: number;
  /** Whether the run had ended. */
  readonly closed?: boolean;
  readonly divergence?: Divergence;
  readonly problem?: ReplayProblem;
  /** Why it was left unread although nothing is wrong with it. */
  readonly skipped?: string;
};

export type DivergedRun = RunReport & { readonly divergence: Divergence };

export type ReplayReport = {
  readonly runs: readonly RunReport[];
  /** Those of `runs` that diverged. */
  readonly divergences: readonly DivergedRun[];
  /** Whether every history replays. */
  readonly ok: boolean;
  /** The same for a person to read. */
  readonly text: string;
};

export function replayReport(runs: readonly RunReport[], note?: string): ReplayReport {
  const divergences = runs.filter((run): run is DivergedRun => run.divergence !== undefined);
  const ok = runs.every((run) => run.divergence === undefined && run.problem === undefined);
  return { runs, divergences, ok, text: textOf(runs, divergences, note) };
}

// ── the text ─────────────────────────────────────────────────────────────────────────────────────────────

/** Divergences and problems that are told in full. */
const maxTold = 20;
/** Runs that are named beside the one that is shown. */
const maxNamed = 5;

function textOf(runs: readonly RunReport[], divergences: readonly DivergedRun[], note: string | undefined): string {
  const troubled = runs.filter(({ problem }) => problem !== undefined);
  const skipped = runs.filter((run) => run.skipped !== undefined);
  const blocks = [
    ...groups(divergences, ({ workflow, version, divergence: { expected, got, at } }) =>
      [workflow, version, expected, got, at].join("\n"),
    ).map(divergenceText),
    ...groups(troubled, ({ workflow, problem }) => [workflow, problem?.message].join("\n")).map(problemText),
  ];
  const told = blocks.slice(0, maxTold);
  if (blocks.length > told.length) told.push(`… and ${blocks.length - told.length} more, in the report's \`runs\`.`);
  return [headline(runs, divergences.length, troubled.length, skipped.length), ...(note === undefined ? [] : [note]), ...told].join("\n\n");
}

function headline(runs: readonly RunReport[], diverged: number, troubled: number, skipped: number): string {
  const checked = runs.length - skipped;
  const left =
    skipped === 0 ? "" : ` ${countOf(skipped, "instance")} left unread: a client reads the newest run of an id, once it has begun.`;
  if (diverged + troubled === 0) return `${countOf(checked, "history", "histories")} checked: all replay.${left}`;
  const parts = [
    ...(diverged > 0 ? [`${diverged} ${diverged === 1 ? "does" : "do"} not replay`] : []),
    ...(troubled > 0 ? [`${troubled} could not be replayed`] : []),
  ];
  return `${countOf(checked, "history", "histories")} checked: ${parts.join(", ")}.${left}`;
}

const countOf = (count: number, one: string, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

function groups<R extends RunReport>(runs: readonly R[], keyOf: (run: R) => string): [R, ...R[]][] {
  const byKey = new Map<string, [R, ...R[]]>();
  for (const run of runs) {
    const group = byKey.get(keyOf(run));
    if (group === undefined) byKey.set(keyOf(run), [run]);
    else group.push(run);
  }
  return [...byKey.values()];
}

function divergenceText([run, ...alike]: [DivergedRun, ...DivergedRun[]]): string {
  const { seq, expected, got, at, asked, diff, note } = run.divergence;
  return [
    `✗ ${nameOf(run)}`,
    `  event ${seq}: history recorded ${expected}`,
    `  the code now asks for ${got}`,
    ...(at === undefined ? [] : [`  ${asked === true ? "at" : "after the yield at"} ${at}`]),
    ...(diff === "" ? [] : ["  recorded (-), asked for now (+):", indented(diff)]),
    ...(note === undefined ? [] : [`  ${note}`]),
    ...alikeLine(alike),
    `  What to do: ${advice(run)}`,
  ].join("\n");
}

function advice({ closed, divergence: { got }, workflow, version }: DivergedRun): string {
  const mend = got.endsWith("with another input")
    ? "pass this effect the input that it had"
    : "let the code ask for the recorded effects, in the recorded order";
  const ended =
    closed === true ? " This run has ended and will not meet the code again; open ones that came this way are parked by it." : "";
  return `${mend}; or register the new code as another version of "${workflow}" beside version "${version}", whose runs then end with the old code.${ended}`;
}

function problemText([run, ...alike]: [RunReport, ...RunReport[]]): string {
  const { problem } = run;
  return [`✗ ${nameOf(run)}`, `  ${problem?.message}`, ...alikeLine(alike)].join("\n");
}

function nameOf({ source, workflow, version, id, runId }: RunReport): string {
  if (workflow === undefined) return source;
  const run = runId === undefined || source.includes(runId) ? "" : `, run ${runId}`;
  return `${workflow} "${id}" (version ${version}${run}), from ${source}`;
}

function alikeLine(alike: readonly RunReport[]): string[] {
  if (alike.length === 0) return [];
  const named = alike.slice(0, maxNamed).map(({ id, source }) => id ?? source);
  const more = alike.length - named.length;
  return [`  and ${countOf(alike.length, "other")} alike: ${named.join(", ")}${more > 0 ? ` and ${more.toLocaleString("en")} more` : ""}`];
}

const indented = (text: string) => text.replace(/^/gm, "    ");
