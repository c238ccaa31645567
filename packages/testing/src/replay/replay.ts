/**
 * Checks histories against code: would the runs that they belong to go on with it?
 *
 * 1. Usable anywhere: no test runner, no assertion library, and nothing global is changed when it has answered.
 * 2. Nothing is executed: no activity, no side effect, no event. Only the code between yields runs, as on every replay.
 * 3. One history is in memory at a time, and none ends the check of the others.
 */
import { type AnyWorkflow, WovyrError } from "@wovyr/sdk";
import { checkOptions, defaultLimits, type ExecutionLimits } from "@wovyr/sdk/internal";
import { Registry } from "@wovyr/server/internal";
import { type FoundHistory, type Histories, historiesOf } from "./history-source.ts";
import { type RecordedHistory, recordedHistory } from "./recorded-history.ts";
import { type ReplayReport, type RunReport, replayReport } from "./replay-report.ts";
import { replayRun } from "./replay-run.ts";

export type ReplayOptions = {
  /** Of the run whose events are given, where the history does not tell it: what `ctx.runId` was. */
  readonly runId?: string | undefined;
  /** The limits of the orchestrator that recorded them, where they are not the default: a run that met one meets it again. */
  readonly limits?: Partial<ExecutionLimits> | undefined;
};

/** Replays histories with these workflows and reports where code and history part; throws only for arguments that are none. */
export async function replay(
  definition: AnyWorkflow | readonly AnyWorkflow[],
  histories: Histories,
  options: ReplayOptions = {},
): Promise<ReplayReport> {
  checkOptions(options, ["runId", "limits"], "replay");
  const registry = registryOf(Array.isArray(definition) ? definition : [definition]);
  const only = Array.isArray(definition) ? undefined : registry.names[0];
  const limits = { ...defaultLimits, ...options.limits };
  const runs: RunReport[] = [];
  let note: string | undefined;
  const limited = (limit: number) => {
    note = `Only the newest ${limit.toLocaleString("en")} instances were checked, and there are more: narrow the \`query\` or raise \`limit\`.`;
  };
  for await (const found of historiesOf(histories, only, limited)) runs.push(await reportOf(found, registry, limits, options.runId));
  return replayReport(runs, note);
}

/** Throws an error with the report's text unless every history replays. */
export async function assertReplays(
  definition: AnyWorkflow | readonly AnyWorkflow[],
  histories: Histories,
  options: ReplayOptions = {},
): Promise<void> {
  const report = await replay(definition, histories, options);
  if (!report.ok) throw new ReplayAssertionError(report);
}

/** Histories and code do not agree; test runners show it as a failed assertion. */
export class ReplayAssertionError extends Error {
  override readonly name = "AssertionError";
  readonly code = "ERR_ASSERTION";
  readonly report: ReplayReport;

  constructor(report: ReplayReport) {
    super(report.text);
    this.report = report;
  }
}

function registryOf(workflows: readonly AnyWorkflow[]): Registry {
  if (workflows.length === 0)
    throw new WovyrError("replay needs at least one workflow: `replay([order, refund], …)`", { code: "INVALID_OPTION" });
  return new Registry(
    workflows.map((workflow, index) => {
      const known = (workflow as Partial<AnyWorkflow> | undefined)?.definition;
      if (known === undefined)
        throw new WovyrError(`definition ${index} given to replay is not what \`workflow(…)\` returned`, { code: "INVALID_DEFINITION" });
      return known;
    }),
  );
}

async function reportOf(found: FoundHistory, registry: Registry, limits: ExecutionLimits, given: string | undefined): Promise<RunReport> {
  const { source, about, skipped, unreadable } = found;
  const runId = found.runId ?? given;
  const base = { source, ...about, ...(runId !== undefined && { runId }), events: found.events?.length ?? 0 };
  if (skipped !== undefined) return { ...base, skipped };
  if (unreadable !== undefined) return { ...base, problem: { message: unreadable } };
  let history: RecordedHistory;
  try {
    history = recordedHistory(found.events ?? []);
  } catch (error) {
    return { ...base, problem: { message: error instanceof Error ? error.message : String(error) } };
  }
  const { start, events, closed } = history;
  const { id, workflow, version } = start;
  const report = { ...base, workflow, version, id, events, closed };
  const definition = registry.find(workflow, version);
  if (definition === undefined) return { ...report, problem: { message: unknownWorkflow(registry, workflow, version) } };
  return { ...report, ...(await replayRun(definition, history, { limits, run: runId ?? "replayed" })) };
}

function unknownWorkflow(registry: Registry, workflow: string, version: string): string {
  if (!registry.names.includes(workflow))
    return `This is a run of workflow "${workflow}", which is not among those that are checked (${registry.names.slice(0, 20).join(", ")}). Add it, or leave its histories out.`;
  const versions = registry.versions(workflow).map((known) => `"${known.version}"`);
  return `This is a run of version "${version}" of workflow "${workflow}", and only ${versions.join(", ")} ${versions.length === 1 ? "is" : "are"} checked. Without that version its open runs wait: register it as well, or leave its histories out.`;
}
