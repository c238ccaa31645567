/**
 * What a fact must hold, for histories that come from outside: an export, a file.
 *
 * 1. The table names every field that the model and the runtime read without asking whether it is there. Others are theirs to ignore.
 * 2. How a field looks depends on the form: stored facts have payloads as text and times as numbers, shown ones have neither. A form is a set of checks.
 */
import type { Failure } from "./failure.ts";
import type { HistoryFact } from "./history.ts";

type Form = Readonly<Record<FactField, (value: unknown) => boolean>>;

const isText = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null;
const isLink = (value: unknown): boolean => isObject(value) && isText(value.id) && isText(value.run);
const isFailure = (value: unknown): boolean => {
  if (!isObject(value)) return false;
  const { name, message, cause } = value as Partial<Failure>;
  return isText(name) && isText(message) && (cause === undefined || isFailure(cause));
};
const isPlanned = (value: unknown): boolean => isObject(value) && isText(value.effect) && isText(value.undoes) && isText(value.name);
const isTime = (value: unknown): boolean => !Number.isNaN(new Date(value as string | Date).getTime());

const common = {
  effect: isText,
  id: isText,
  workflow: isText,
  version: isText,
  name: isText,
  message: isText,
  seed: (value: unknown): boolean => typeof value === "string" && /^[0-9a-f]{32}$/.test(value),
  digest: isText,
  run: isText,
  patch: isText,
  purpose: isText,
  onParentClose: isText,
  status: isText,
  mode: isText,
  correlationId: isText,
  attempt: isNumber,
  delay: isNumber,
  admitted: (value: unknown): boolean => typeof value === "boolean",
  at: isNumber,
  to: isNumber,
  from: isLink,
  failure: isFailure,
  compensation: isFailure,
  compensations: (value: unknown): boolean => Array.isArray(value) && value.every(isPlanned),
  decision: (value: unknown): boolean => value === "retry" || value === "skip" || value === "resolve" || value === "fail",
};

/** As the store has them. */
export const storedForm: Form = {
  ...common,
  due: isNumber,
  input: isText,
  output: isText,
  payload: isText,
  variables: isText,
  attributes: isText,
};

/** As the API shows them; a payload may be anything, and is left out where it was undefined. */
export const shownForm: Form = {
  ...common,
  due: isTime,
  input: () => true,
  output: () => true,
  payload: () => true,
  variables: () => true,
  attributes: () => true,
  status: () => true,
  mode: () => true,
  onParentClose: () => true,
};

type FactField = keyof typeof common | "due" | "input" | "output" | "payload" | "variables" | "attributes";

const fields: Readonly<Record<HistoryFact["type"], readonly FactField[]>> = {
  InstanceStarted: ["id", "workflow", "version", "input", "seed"],
  ActivityScheduled: ["effect", "name", "input", "digest"],
  ActivityCompleted: ["effect", "attempt", "output"],
  ActivityFailed: ["effect", "attempt", "failure"],
  AttemptStarted: ["effect", "attempt"],
  AttemptLost: ["effect", "attempt"],
  TimerStarted: ["effect", "purpose", "due"],
  TimerFired: ["effect"],
  EventAwaited: ["effect", "name"],
  EventReceived: ["message", "name", "payload"],
  EventConsumed: ["effect", "message"],
  ChildStarted: ["effect", "workflow", "version", "id", "run", "input", "digest", "onParentClose"],
  ChildCompleted: ["effect", "output"],
  ChildFailed: ["effect", "status", "failure"],
  ChildRejected: ["effect", "failure"],
  SideEffectRecorded: ["effect"],
  EffectCancelled: ["effect"],
  ChildCancelRequested: ["effect"],
  CompensationStarted: ["effect", "compensations"],
  CompensationCompleted: ["effect"],
  CompensationFailed: ["effect", "failure"],
  CompensationStuck: ["effect", "failure"],
  ActivityDecided: ["message", "effect", "attempt", "decision"],
  CompensationDecided: ["message", "effect", "decision"],
  UpdateRequested: ["message", "name", "input"],
  StartReplaced: ["message", "input", "delay"],
  AdmissionDecided: ["admitted"],
  WakeRequested: ["message"],
  UpdateCompleted: ["message", "output"],
  UpdateFailed: ["message", "failure"],
  ConditionAwaited: ["effect"],
  ConditionMet: ["effect"],
  Patched: ["patch"],
  CancelRequested: ["message", "mode"],
  TerminateRequested: ["message"],
  PauseRequested: ["message"],
  ResumeRequested: ["message"],
  ResetRequested: ["message", "to", "run"],
  Forked: ["from", "at", "id", "run", "seed", "correlationId"],
  Imported: ["at"],
  VariablesChanged: ["variables"],
  AttributesChanged: ["attributes"],
  Parked: ["failure"],
  Resumed: [],
  InstanceCompleted: ["output"],
  InstanceFailed: ["failure"],
  InstanceTimedOut: ["failure"],
  InstanceCancelled: ["failure"],
  InstanceTerminated: ["failure"],
  InstanceCompensated: ["failure"],
  InstanceCompensationFailed: ["failure", "compensation"],
  InstanceContinuedAsNew: ["run", "version", "input", "digest"],
};

/** What is wrong with a fact: a type that is not known, or a field that it lacks; undefined when nothing is. */
export function misshapenFact(type: string, data: Readonly<Record<string, unknown>>, form: Form): string | undefined {
  if (!Object.hasOwn(fields, type)) return `is of type "${type}", which this version of Wovyr does not know`;
  const field = fields[type as HistoryFact["type"]].find((name) => !form[name](data[name]));
  return field === undefined ? undefined : `(${type}) has no proper \`${field}\``;
}
