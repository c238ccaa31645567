/**
 * The route table: everything that HTTP offers, once. The server serves it, the client calls it, the OpenAPI document is made of it.
 *
 * 1. A path parameter is a name (`checkName`), so a path is filled in without escaping.
 * 2. A body is optional where the row says so; an absent one counts as `{}`.
 * 3. A row that changes something takes an `Idempotency-Key`; but for a published event, which names itself.
 */
import type { TObject, TSchema } from "@sinclair/typebox";
import { deadLetterKinds } from "../model/dead-letter.ts";
import type { ErrorCode } from "../model/errors.ts";
import { CloudEvent } from "./cloud-event.ts";
import { formatParameter, mermaidType } from "./graph-format.ts";
import { choice } from "./kinds.ts";
import { mediaTypes } from "./media.ts";
import {
  attributesParameter,
  choiceParameter,
  choicesParameter,
  cursorParameter,
  durationParameter,
  nameParameter,
  type QueryShape,
  timestampParameter,
  wholeNumber,
} from "./query.ts";
import {
  Accepted,
  BatchAnswer,
  BatchBody,
  BatchOperationBody,
  BatchRef,
  BatchSchema,
  CancelBody,
  ClusterSchema,
  DeadLetterDetailsSchema,
  DeadLetterList,
  DecisionBody,
  DecisionsBody,
  DeleteAnswer,
  DescriptionSchema,
  EventBody,
  ForkBody,
  HistoryAnswer,
  ImportAnswer,
  InputBody,
  InstanceList,
  InstanceRef,
  Liveness,
  PauseBody,
  PublishedSchema,
  QueryAnswer,
  Readiness,
  ResetBody,
  ResolutionBody,
  ResolutionsBody,
  ResultSchema,
  RunGraphSchema,
  StartAnswer,
  StartBody,
  TerminateBody,
  UpdateAnswer,
  WorkflowDetailsSchema,
  WorkflowList,
} from "./schemas.ts";
import { statuses } from "./status.ts";
import { taskRoutes } from "./task-routes.ts";

export type RouteAnswer = {
  readonly description: string;
  /** Absent where the answer has no body, or one of another type than JSON. */
  readonly schema?: TSchema;
  readonly type?: string;
  /** A type of text that it is offered in beside JSON. */
  readonly text?: string;
  readonly headers?: readonly ("Location" | "Idempotency-Replayed")[];
};

export type Route = {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly query?: QueryShape;
  /** `cloudEvent`: the body may also be `application/cloudevents+json`, or the data of an event whose attributes are headers. */
  readonly body?: { readonly schema: TObject; readonly required: boolean; readonly cloudEvent?: true };
  /** Takes lines of JSON instead, so many bytes at most. */
  readonly lines?: { readonly limit: number; readonly description: string };
  /** Takes an `Idempotency-Key`. */
  readonly changes?: true;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** Beside those that every route may answer with. */
  readonly errors: readonly ErrorCode[];
};

/** What any route may answer with. */
export const commonErrors = [
  "MALFORMED_REQUEST",
  "INVALID_NAME",
  "SCHEMA_VIOLATION",
  "OVERLOADED",
  "STORE_UNAVAILABLE",
  "SHUTTING_DOWN",
  "OWNER_UNREACHABLE",
  "CLUSTER_MISCONFIGURED",
  "INTERNAL",
] as const satisfies readonly ErrorCode[];

/** What a route that takes a body may answer with. */
export const bodyErrors = [
  "BODY_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_UNSERIALIZABLE",
] as const satisfies readonly ErrorCode[];

/** What a route that takes an `Idempotency-Key` may answer with. */
export const changeErrors = ["IDEMPOTENCY_CONFLICT", "NOT_OWNER"] as const satisfies readonly ErrorCode[];

/** Bytes of the lines that one import takes. */
export const longestImport = 64 * 1024 * 1024;

/** The longest that one request waits, in milliseconds; a longer `wait` counts as this. */
export const longestWait = 60_000;

const wait = durationParameter(
  "How long to wait for the result; at most 60 s, and a longer wait counts as that. Default: not at all.",
  longestWait,
);
const updateWait = durationParameter(
  "How long to wait for the handler; at most 60 s, and a longer wait counts as that. Default: 30 s.",
  longestWait,
);
const runId = nameParameter("A certain run of this id. Default: the newest.");
const workflowOf = nameParameter("Only instances of this workflow.");

const startErrors = [
  "WORKFLOW_NOT_FOUND",
  "INVALID_INPUT",
  "INVALID_DURATION",
  "INVALID_OPTION",
  "INSTANCE_EXISTS",
] as const satisfies readonly ErrorCode[];

/** What somebody decides on a compensation that is stuck. */
const decision = <const Name extends string>(name: Name, summary: string) =>
  ({
    method: "POST",
    path: `/v1/instances/{id}/compensations/{effect}/${name}`,
    summary,
    query: { runId },
    body: { schema: DecisionBody, required: false },
    changes: true,
    answers: { 202: { description: "Recorded.", schema: Accepted, headers: ["Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED", "COMPENSATION_NOT_FOUND", "COMPENSATION_NOT_STUCK"],
  }) as const satisfies Route;

/** What somebody decides on a dead letter. */
const letterDecision = <const Name extends string, const Body extends TObject, const Codes extends readonly ErrorCode[]>(
  name: Name,
  summary: string,
  schema: Body,
  errors: Codes,
) =>
  ({
    method: "POST",
    path: `/v1/dead-letters/{letter}/${name}`,
    summary,
    body: { schema, required: false },
    changes: true,
    answers: { 202: { description: "Recorded.", schema: Accepted, headers: ["Idempotency-Replayed"] } },
    errors: ["DEAD_LETTER_NOT_FOUND", "DEAD_LETTER_DECIDED", "DECISION_NOT_POSSIBLE", ...errors],
  }) as const satisfies Route;

/** What somebody decides on many dead letters. */
const letterDecisions = <const Name extends string, const Body extends TObject>(name: Name, summary: string, schema: Body) =>
  ({
    method: "POST",
    path: `/v1/dead-letters/${name}`,
    summary,
    body: { schema, required: true },
    changes: true,
    answers: {
      202: {
        description: "It has begun, as a batch: `/v1/batches/{id}`.",
        schema: BatchRef,
        headers: ["Location", "Idempotency-Replayed"],
      },
    },
    errors: ["INVALID_OPTION", "INVALID_DURATION", "INSTANCE_EXISTS"],
  }) as const satisfies Route;

export const routes = {
  listWorkflows: {
    method: "GET",
    path: "/v1/workflows",
    summary: "Registered workflows",
    answers: { 200: { description: "All of them.", schema: WorkflowList } },
    errors: [],
  },
  getWorkflow: {
    method: "GET",
    path: "/v1/workflows/{name}",
    summary: "One registered workflow",
    answers: {
      200: { description: "Its versions, schemas and graphs.", schema: WorkflowDetailsSchema },
    },
    errors: ["WORKFLOW_NOT_FOUND"],
  },
  startInstance: {
    method: "POST",
    path: "/v1/workflows/{name}/instances",
    summary: "Start an instance",
    query: { wait },
    body: { schema: StartBody, required: false },
    changes: true,
    answers: {
      201: {
        description: "Started; with `wait`, and when the run closed in time, with its result.",
        schema: StartAnswer,
        headers: ["Location", "Idempotency-Replayed"],
      },
      200: {
        description: "An open instance of this id was there already (`onConflict: return`).",
        schema: StartAnswer,
        headers: ["Location", "Idempotency-Replayed"],
      },
    },
    errors: startErrors,
  },
  startBatch: {
    method: "POST",
    path: "/v1/workflows/{name}/instances/batch",
    summary: "Start up to 1,000 instances of one workflow",
    body: { schema: BatchBody, required: true },
    changes: true,
    answers: {
      200: {
        description: "Each start by itself: one item per start, in order.",
        schema: BatchAnswer,
      },
    },
    errors: startErrors,
  },
  listInstances: {
    method: "GET",
    path: "/v1/instances",
    summary: "List and search instances, newest first",
    query: {
      workflow: workflowOf,
      status: choicesParameter(choice(statuses, { $id: "Status" }), statuses, "Only instances in this status; repeat it for several."),
      attributes: attributesParameter,
      startedAfter: timestampParameter("Only instances that started at this time or later."),
      startedBefore: timestampParameter("Only instances that started before this time."),
      cursor: cursorParameter,
      limit: wholeNumber("Instances per page.", 1, 500, 50),
    },
    answers: { 200: { description: "A page.", schema: InstanceList } },
    errors: ["INVALID_CURSOR", "INVALID_DURATION"],
  },
  getInstance: {
    method: "GET",
    path: "/v1/instances/{id}",
    summary: "Everything about one instance",
    query: { runId },
    answers: {
      200: {
        description: "Its state, what it waits for, what it holds.",
        schema: DescriptionSchema,
      },
    },
    errors: ["INSTANCE_NOT_FOUND"],
  },
  listRuns: {
    method: "GET",
    path: "/v1/instances/{id}/runs",
    summary: "The runs of an id, newest first",
    query: { cursor: cursorParameter, limit: wholeNumber("Runs per page.", 1, 500, 50) },
    answers: { 200: { description: "A page.", schema: InstanceList } },
    errors: ["INSTANCE_NOT_FOUND", "INVALID_CURSOR"],
  },
  getResult: {
    method: "GET",
    path: "/v1/instances/{id}/result",
    summary: "The result, waited for",
    query: { wait, runId },
    answers: {
      200: {
        description: "It is closed. A failed run is a successful read.",
        schema: ResultSchema,
      },
      202: { description: "It is still open; ask again.", schema: InstanceRef },
    },
    errors: ["INSTANCE_NOT_FOUND", "INVALID_DURATION"],
  },
  getHistory: {
    method: "GET",
    path: "/v1/instances/{id}/history",
    summary: "The events of a run",
    query: {
      runId,
      fromSeq: wholeNumber("Number of the first event.", 1, Number.MAX_SAFE_INTEGER, 1),
      limit: wholeNumber("Events per page; a page of large events may hold fewer.", 1, 1_000, 500),
    },
    answers: { 200: { description: "A page.", schema: HistoryAnswer } },
    errors: ["INSTANCE_NOT_FOUND"],
  },
  getGraph: {
    method: "GET",
    path: "/v1/instances/{id}/graph",
    summary: "A run as nodes and edges: what it did, and what it is at",
    query: { runId, format: formatParameter },
    answers: {
      200: {
        description: "Its graph; as text of Mermaid where `format` or `Accept` asks for it.",
        schema: RunGraphSchema,
        text: mermaidType,
      },
    },
    errors: ["INSTANCE_NOT_FOUND"],
  },
  streamInstance: {
    method: "GET",
    path: "/v1/instances/{id}/stream",
    summary: "The events of a run as they are recorded",
    query: { runId },
    answers: {
      200: {
        description:
          "Server-sent events: `id: <runId>:<seq>`, `event: <type>`, `data: <event as in history>`; first those that are recorded, then live ones, until the run closes. Resume with `Last-Event-ID`.",
        type: "text/event-stream",
      },
      204: {
        description: "`Last-Event-ID` names the last event of a closed run: there is nothing more, do not reconnect.",
      },
    },
    errors: ["INSTANCE_NOT_FOUND", "INVALID_CURSOR"],
  },
  sendEvent: {
    method: "POST",
    path: "/v1/instances/{id}/events/{name}",
    summary: "Deliver an event; it is kept until the workflow awaits it",
    query: { runId },
    body: { schema: EventBody, required: false },
    changes: true,
    answers: {
      202: {
        description: "Recorded.",
        schema: Accepted,
        headers: ["Idempotency-Replayed"],
      },
    },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED", "INVALID_INPUT"],
  },
  publishEvent: {
    method: "POST",
    path: "/v1/events",
    summary: "Publish an event: to every run that waits for it, and to the workflows that it triggers",
    body: { schema: CloudEvent, required: true, cloudEvent: true },
    answers: {
      202: {
        description: "Durable: it reaches the runs that waited, and what it triggers has started.",
        schema: PublishedSchema,
        headers: ["Idempotency-Replayed"],
      },
    },
    errors: ["INVALID_INPUT", "INVALID_DURATION", "INVALID_OPTION", ...changeErrors],
  },
  queryInstance: {
    method: "POST",
    path: "/v1/instances/{id}/queries/{name}",
    summary: "Ask the workflow's live state; a closed run answers as well",
    query: { runId },
    body: { schema: InputBody, required: false },
    answers: { 200: { description: "What its handler says.", schema: QueryAnswer } },
    errors: [
      "INSTANCE_NOT_FOUND",
      "INSTANCE_PARKED",
      "VERSION_NOT_REGISTERED",
      "HANDLER_NOT_FOUND",
      "QUERY_FAILED",
      "INVALID_INPUT",
      "NOT_OWNER",
    ],
  },
  updateInstance: {
    method: "POST",
    path: "/v1/instances/{id}/updates/{name}",
    summary: "Change an instance and wait for what its handler says",
    query: { runId, wait: updateWait },
    body: { schema: InputBody, required: false },
    changes: true,
    answers: {
      200: { description: "Handled. A handler that failed is a successful call.", schema: UpdateAnswer },
      202: { description: "Taken and still at work; the same request with the same Idempotency-Key waits on.", schema: UpdateAnswer },
    },
    errors: [
      "INSTANCE_NOT_FOUND",
      "INSTANCE_CLOSED",
      "INSTANCE_PARKED",
      "VERSION_NOT_REGISTERED",
      "HANDLER_NOT_FOUND",
      "UPDATE_REJECTED",
      "INVALID_INPUT",
      "INVALID_DURATION",
    ],
  },
  wakeInstance: {
    method: "POST",
    path: "/v1/instances/{id}/wake",
    summary: "End the sleeps that an instance is in",
    query: { runId },
    changes: true,
    answers: { 202: { description: "Recorded.", schema: Accepted, headers: ["Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  pauseInstance: {
    method: "POST",
    path: "/v1/instances/{id}/pause",
    summary: "Let an instance take no step until it is resumed; what arrives is kept",
    query: { runId },
    body: { schema: PauseBody, required: false },
    changes: true,
    answers: { 202: { description: "Recorded.", schema: Accepted, headers: ["Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  resumeInstance: {
    method: "POST",
    path: "/v1/instances/{id}/resume",
    summary: "Let a paused instance go on, and try a parked one again",
    query: { runId },
    changes: true,
    answers: { 202: { description: "Recorded.", schema: Accepted, headers: ["Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  cancelInstance: {
    method: "POST",
    path: "/v1/instances/{id}/cancel",
    summary: "Ask an instance to end; its code may clean up",
    query: { runId },
    body: { schema: CancelBody, required: false },
    changes: true,
    answers: {
      202: {
        description: "Recorded.",
        schema: Accepted,
        headers: ["Idempotency-Replayed"],
      },
    },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  retryCompensation: decision("retry", "Try a compensation that is stuck once more"),
  skipCompensation: decision("skip", "Give a compensation that is stuck up; the run ends as CompensationFailed"),
  resolveCompensation: decision("resolve", "Say that what a stuck compensation was to do has been done by hand"),
  terminateInstance: {
    method: "POST",
    path: "/v1/instances/{id}/terminate",
    summary: "End an instance at once; none of its code runs",
    query: { runId },
    body: { schema: TerminateBody, required: false },
    changes: true,
    answers: {
      202: {
        description: "Recorded.",
        schema: Accepted,
        headers: ["Idempotency-Replayed"],
      },
    },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  forkInstance: {
    method: "POST",
    path: "/v1/instances/{id}/fork",
    summary: "Begin another instance from a place in this one's history, or with its input",
    body: { schema: ForkBody, required: false },
    changes: true,
    answers: { 201: { description: "Begun.", schema: InstanceRef, headers: ["Location", "Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_EXISTS", "NOT_A_BORDER", "WORKFLOW_NOT_FOUND", "INVALID_INPUT", "INVALID_OPTION"],
  },
  resetInstance: {
    method: "POST",
    path: "/v1/instances/{id}/reset",
    summary: "Let another run of this id go on from a place in its history; an open run is terminated",
    body: { schema: ResetBody, required: true },
    changes: true,
    answers: { 201: { description: "The run that goes on.", schema: InstanceRef, headers: ["Location", "Idempotency-Replayed"] } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_EXISTS", "NOT_A_BORDER"],
  },
  exportInstance: {
    method: "GET",
    path: "/v1/instances/{id}/export",
    summary: "A run as lines of JSON: itself, its turns, and what is kept for it",
    query: { runId },
    answers: { 200: { description: "The lines, values as they are stored.", type: mediaTypes.lines } },
    errors: ["INSTANCE_NOT_FOUND"],
  },
  importInstances: {
    method: "POST",
    path: "/v1/instances/import",
    summary: "Take in exported runs: all of them, or none",
    lines: { limit: longestImport, description: "What exports gave, one after another; at most 1,000 runs and 64 MiB." },
    answers: { 201: { description: "They are here; open ones go on.", schema: ImportAnswer } },
    errors: ["INVALID_EXPORT", "RUN_EXISTS", "INSTANCE_EXISTS", "NOT_OWNER"],
  },
  deleteInstance: {
    method: "DELETE",
    path: "/v1/instances/{id}",
    summary: "Remove the closed runs of an id, or one of them",
    query: { runId },
    answers: { 200: { description: "They are gone.", schema: DeleteAnswer } },
    errors: ["INSTANCE_NOT_FOUND", "INSTANCE_OPEN", "NOT_OWNER"],
  },
  startBatchOperation: {
    method: "POST",
    path: "/v1/batches",
    summary: "Do something to every instance that a filter finds",
    body: { schema: BatchOperationBody, required: true },
    changes: true,
    answers: { 202: { description: "It has begun.", schema: BatchRef, headers: ["Location", "Idempotency-Replayed"] } },
    errors: ["INVALID_OPTION", "INVALID_DURATION", "INSTANCE_EXISTS"],
  },
  getBatchOperation: {
    method: "GET",
    path: "/v1/batches/{id}",
    summary: "How far a batch is",
    answers: { 200: { description: "Its progress.", schema: BatchSchema } },
    errors: ["BATCH_NOT_FOUND"],
  },
  cancelBatchOperation: {
    method: "POST",
    path: "/v1/batches/{id}/cancel",
    summary: "Stop a batch; what it has done stays done",
    changes: true,
    answers: { 202: { description: "Recorded.", schema: BatchRef, headers: ["Idempotency-Replayed"] } },
    errors: ["BATCH_NOT_FOUND", "INSTANCE_CLOSED"],
  },
  listDeadLetters: {
    method: "GET",
    path: "/v1/dead-letters",
    summary: "List work that was given up and waits for a person, newest first",
    query: {
      kind: choiceParameter(choice(deadLetterKinds, { $id: "DeadLetterKind" }), deadLetterKinds, "Only those of this kind."),
      workflow: nameParameter("Only those of runs of this workflow."),
      name: nameParameter("Only those of this activity, workflow or event."),
      instanceId: nameParameter("Only those of runs of this instance."),
      code: nameParameter("Only those whose failure, or what caused it, has this code."),
      since: timestampParameter("Only those that were given up at this time or later."),
      until: timestampParameter("Only those that were given up before this time."),
      cursor: cursorParameter,
      limit: wholeNumber("Dead letters per page.", 1, 500, 50),
    },
    answers: { 200: { description: "A page.", schema: DeadLetterList } },
    errors: ["INVALID_CURSOR", "INVALID_DURATION"],
  },
  getDeadLetter: {
    method: "GET",
    path: "/v1/dead-letters/{letter}",
    summary: "Everything about one dead letter",
    answers: { 200: { description: "With its input and its failed attempts.", schema: DeadLetterDetailsSchema } },
    errors: ["DEAD_LETTER_NOT_FOUND", "DEAD_LETTER_DECIDED"],
  },
  retryDeadLetter: letterDecision("retry", "Have the work done anew", DecisionBody, [
    "INSTANCE_NOT_FOUND",
    "INSTANCE_CLOSED",
    "INSTANCE_EXISTS",
    "WORKFLOW_NOT_FOUND",
    "INVALID_INPUT",
  ]),
  resolveDeadLetter: letterDecision("resolve", "Say what an activity came to, or that something was undone by hand", ResolutionBody, [
    "INVALID_INPUT",
  ]),
  retryDeadLetters: letterDecisions("retry", "Have the work of many dead letters done anew", DecisionsBody),
  resolveDeadLetters: letterDecisions("resolve", "Say what many activities came to: all of them to the same", ResolutionsBody),
  failDeadLetters: letterDecisions("fail", "Let the work of many dead letters fail", DecisionsBody),
  discardDeadLetters: letterDecisions("discard", "Drop many runs or events that nobody wants any more", DecisionsBody),
  failDeadLetter: letterDecision("fail", "Let the work fail: whoever waits for it gets the failure", DecisionBody, []),
  discardDeadLetter: letterDecision("discard", "Drop a run or an event that nobody wants any more", DecisionBody, []),
  getCluster: {
    method: "GET",
    path: "/v1/cluster",
    summary: "The orchestrators that share the work of this one's group, and which shards each of them owns",
    answers: { 200: { description: "As this one knows them.", schema: ClusterSchema } },
    errors: [],
  },
  ...taskRoutes,
  live: {
    method: "GET",
    path: "/health/live",
    summary: "Whether the process answers",
    answers: { 200: { description: "It does.", schema: Liveness } },
    errors: [],
  },
  ready: {
    method: "GET",
    path: "/health/ready",
    summary: "Whether it can take work",
    answers: {
      200: { description: "It can.", schema: Readiness },
      503: { description: "Not now.", schema: Readiness },
    },
    errors: [],
  },
  openapi: {
    method: "GET",
    path: "/openapi.json",
    summary: "This document",
    answers: { 200: { description: "OpenAPI 3.1.", type: "application/json" } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export type OperationId = keyof typeof routes;

/** The path with its parameters filled in. Names need no escaping, and that they are names was checked. */
export function pathOf(route: Route, names: Readonly<Record<string, string>>): string {
  return route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? "");
}
