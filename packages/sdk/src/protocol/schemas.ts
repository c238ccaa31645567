/**
 * The shapes of bodies, as JSON (the plain view).
 *
 * 1. What clients send is strict: an unknown property is refused. What they receive may grow: nothing says that there are no other properties.
 * 2. A schema with an `$id` is a component of the OpenAPI document under that name.
 */
import { type Static, Type } from "@sinclair/typebox";
import { edgeKinds, nodeKinds } from "../graph/graph.ts";
import { deadLetterDecisions, deadLetterKinds } from "../model/dead-letter.ts";
import { errorCodes } from "../model/errors.ts";
import { failureKinds } from "../model/failure-kind.ts";
import { priorities } from "../model/priority.ts";
import { longestRemark } from "../model/remark.ts";
import { anyValue, choice, durationSchema, nameSchema, timestamp } from "./kinds.ts";
import { statuses } from "./status.ts";

const strict = { additionalProperties: false } as const;

export const maxBatch = 1_000;

// ── requests ──

const attributeValue = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Array(Type.String())], {
  description: "a string, a number, a boolean or an array of strings",
});

const startProperties = {
  input: Type.Optional(anyValue),
  id: Type.Optional(nameSchema),
  version: Type.Optional(nameSchema),
  startAt: Type.Optional(timestamp),
  delay: Type.Optional(durationSchema),
  timeout: Type.Optional(
    Type.Union([durationSchema, Type.Object({ run: Type.Optional(durationSchema), execution: Type.Optional(durationSchema) }, strict)], {
      description: "How long one run, or all runs of the start (what a duration alone means), may take; goes over what the workflow says",
    }),
  ),
  attributes: Type.Optional(Type.Record(nameSchema, attributeValue, strict)),
  memo: Type.Optional(Type.Record(Type.String(), anyValue)),
  correlationId: Type.Optional(nameSchema),
  priority: Type.Optional(choice(priorities)),
  onConflict: Type.Optional(choice(["fail", "return"])),
  event: Type.Optional(
    Type.Object(
      { name: nameSchema, payload: Type.Optional(anyValue), idempotencyKey: Type.Optional(Type.String({ pattern: "^[!-~]{1,255}$" })) },
      { ...strict, $id: "StartEvent" },
    ),
  ),
};

export const StartBody = Type.Object(startProperties, {
  ...strict,
  $id: "Start",
});
export type StartBody = Static<typeof StartBody>;

export const idempotencyKey = Type.String({
  pattern: "^[!-~]{1,255}$",
  description: "1 to 255 visible ASCII characters",
});

export const BatchBody = Type.Object(
  {
    items: Type.Array(
      Type.Object({ ...startProperties, idempotencyKey: Type.Optional(idempotencyKey) }, { ...strict, $id: "BatchStart" }),
      {
        minItems: 1,
        maxItems: maxBatch,
      },
    ),
  },
  { ...strict, $id: "Batch" },
);
export type BatchBody = Static<typeof BatchBody>;

export const EventBody = Type.Object({ payload: Type.Optional(anyValue) }, { ...strict, $id: "Event" });

export const InputBody = Type.Object({ input: Type.Optional(anyValue) }, { ...strict, $id: "Input" });

const reason = Type.Optional(Type.String({ maxLength: longestRemark }));

export const CancelBody = Type.Object(
  { mode: Type.Optional(choice(["graceful", "immediate", "compensate"])), reason },
  { ...strict, $id: "Cancel" },
);

export const TerminateBody = Type.Object({ reason }, { ...strict, $id: "Terminate" });

export const DecisionBody = Type.Object(
  {
    note: Type.Optional(Type.String({ maxLength: longestRemark, description: "a text of 1,000 characters at most: why; kept in history" })),
  },
  { ...strict, $id: "Decision" },
);

export const PauseBody = Type.Object({ reason }, { ...strict, $id: "Pause" });

const border = Type.Union([Type.Integer({ minimum: 1 }), choice(["first", "last"])], {
  description: "the number of the last event to keep, which ends a turn; or `first` or `last` of those",
});

export const ForkBody = Type.Object(
  {
    at: Type.Optional(border),
    id: Type.Optional(nameSchema),
    input: Type.Optional(anyValue),
    version: Type.Optional(nameSchema),
    runId: Type.Optional(nameSchema),
  },
  { ...strict, $id: "Fork" },
);

export const ResetBody = Type.Object({ to: border, reason, runId: Type.Optional(nameSchema) }, { ...strict, $id: "Reset" });

const batchOperation = Type.Union(
  [
    Type.Object({ type: choice(["cancel"]), ...CancelBody.properties }, strict),
    Type.Object({ type: choice(["terminate"]), reason }, strict),
    Type.Object({ type: choice(["pause"]), reason }, strict),
    Type.Object({ type: choice(["resume"]) }, strict),
    Type.Object({ type: choice(["wake"]) }, strict),
    Type.Object({ type: choice(["send"]), event: nameSchema, payload: Type.Optional(anyValue) }, strict),
    Type.Object({ type: choice(["reset"]), to: border, reason }, strict),
    Type.Object({ type: choice(["delete"]) }, strict),
  ],
  { $id: "BatchOperation", description: "an operation: `type` names the call, the rest are its options" },
);

const batchFilter = Type.Object(
  {
    workflow: Type.Optional(nameSchema),
    status: Type.Optional(Type.Array(choice(statuses, { $id: "Status" }))),
    attributes: Type.Optional(Type.Record(nameSchema, Type.Union([Type.String(), Type.Number(), Type.Boolean()]), strict)),
    startedAfter: Type.Optional(timestamp),
    startedBefore: Type.Optional(timestamp),
  },
  { ...strict, $id: "BatchFilter" },
);

export const BatchOperationBody = Type.Object(
  { operation: batchOperation, filter: batchFilter, id: Type.Optional(nameSchema) },
  { ...strict, $id: "BatchRequest" },
);
export type BatchOperationBody = Static<typeof BatchOperationBody>;

const note = DecisionBody.properties.note;

export const ResolutionBody = Type.Object(
  { output: Type.Optional(anyValue), note },
  { ...strict, $id: "Resolution", description: "What the activity came to: it must fit the activity's output schema." },
);

/** How many dead letters one decision may name. */
export const maxLetters = 1_000;

const deadLetterFilter = Type.Object(
  {
    ids: Type.Optional(Type.Array(nameSchema, { minItems: 1, maxItems: maxLetters })),
    kind: Type.Optional(choice(deadLetterKinds, { $id: "DeadLetterKind" })),
    workflow: Type.Optional(nameSchema),
    name: Type.Optional(nameSchema),
    instanceId: Type.Optional(nameSchema),
    code: Type.Optional(nameSchema),
    since: Type.Optional(timestamp),
    until: Type.Optional(timestamp),
  },
  { ...strict, $id: "DeadLetterFilter", description: "Which dead letters: those of `ids`, or all that fit the rest." },
);

export const DecisionsBody = Type.Object(
  { letters: deadLetterFilter, note, id: Type.Optional(nameSchema) },
  { ...strict, $id: "Decisions" },
);
export type DecisionsBody = Static<typeof DecisionsBody>;

export const ResolutionsBody = Type.Object(
  { letters: deadLetterFilter, output: Type.Optional(anyValue), note, id: Type.Optional(nameSchema) },
  { ...strict, $id: "Resolutions" },
);

// ── answers ──

const status = choice(statuses, { $id: "Status" });

export const FailureSchema = Type.Recursive(
  (self) =>
    Type.Object({
      name: Type.String(),
      message: Type.String(),
      code: Type.Optional(Type.String()),
      kind: Type.Optional(choice(failureKinds, { $id: "FailureKind", description: "Of the failure of an attempt or of a run." })),
      stack: Type.Optional(Type.String()),
      cause: Type.Optional(self),
      fields: Type.Optional(anyValue),
      thrown: Type.Optional(anyValue),
    }),
  {
    $id: "Failure",
    description: "An error as data: what a run or an attempt failed with.",
  },
);

const jsonSchema = Type.Union([Type.Object({}), Type.Null()], {
  description: "JSON schema; null where there is none or it has no JSON form",
});

export const WorkflowSchema = Type.Object(
  {
    name: nameSchema,
    versions: Type.Array(Type.String(), {
      description: "Registered versions, the default for new instances last.",
    }),
    input: jsonSchema,
    output: jsonSchema,
    triggers: Type.Array(Type.String(), { description: "Events whose publication starts an instance of the newest version." }),
  },
  { $id: "Workflow" },
);

const GraphAttempt = Type.Object(
  {
    number: Type.Integer({ minimum: 1 }),
    startedAt: timestamp,
    endedAt: Type.Optional(timestamp),
    failure: Type.Optional(Type.Object({ name: Type.String(), message: Type.String(), code: Type.Optional(Type.String()) })),
    lost: Type.Optional(choice(["crash", "shutdown"])),
    nextAt: Type.Optional(timestamp),
  },
  { $id: "GraphAttempt" },
);

const GraphNode = Type.Object(
  {
    id: Type.String(),
    kind: Type.String({ description: `One of ${nodeKinds.join(", ")}; later versions may have more.` }),
    name: Type.String(),
    state: Type.Optional(Type.String()),
    startedAt: Type.Optional(timestamp),
    endedAt: Type.Optional(timestamp),
    dueAt: Type.Optional(timestamp),
    attempts: Type.Optional(Type.Array(GraphAttempt)),
    failure: GraphAttempt.properties.failure,
    childRun: Type.Optional(Type.Object({ workflow: Type.String(), id: Type.String(), runId: Type.String() })),
  },
  { $id: "GraphNode" },
);

const GraphEdge = Type.Object(
  {
    from: Type.String(),
    to: Type.String(),
    kind: Type.String({ description: `One of ${edgeKinds.join(", ")}; later versions may have more.` }),
    label: Type.Optional(Type.String()),
  },
  { $id: "GraphEdge" },
);

const graph = { workflow: Type.String(), version: Type.String(), nodes: Type.Array(GraphNode), edges: Type.Array(GraphEdge) };

export const GraphSchema = Type.Object(graph, { $id: "Graph" });

export const RunGraphSchema = Type.Object({ id: nameSchema, runId: Type.String(), status, ...graph }, { $id: "RunGraph" });

export const WorkflowDetailsSchema = Type.Object(
  {
    ...WorkflowSchema.properties,
    graph: Type.Record(Type.String(), GraphSchema, { description: "What the source of each version says that it does, by version." }),
  },
  { $id: "WorkflowDetails" },
);

export const WorkflowList = Type.Object({ items: Type.Array(WorkflowSchema) }, { $id: "WorkflowList" });

const identity = { id: nameSchema, runId: Type.String(), status };

export const InstanceRef = Type.Object(identity, { $id: "InstanceRef" });

export const ResultSchema = Type.Object(
  {
    ...identity,
    output: Type.Optional(anyValue),
    failure: Type.Optional(FailureSchema),
    compensation: Type.Optional(FailureSchema),
  },
  {
    $id: "Result",
    description:
      "Of a completed run `output`, null where it returned nothing; of another closed run `failure`, and of one that could not undo everything `compensation`.",
  },
);

export const StartAnswer = Type.Object(
  {
    ...identity,
    output: Type.Optional(anyValue),
    failure: Type.Optional(FailureSchema),
    compensation: Type.Optional(FailureSchema),
  },
  {
    $id: "Started",
    description: "With `wait`, and when the run closed in time, also its result.",
  },
);

export const ViolationSchema = Type.Object(
  {
    pointer: Type.String({
      description: "JSON pointer into the body; `/query/…`, `/path/…` and `/headers/…` for what stands outside it",
    }),
    message: Type.String(),
  },
  { $id: "Violation" },
);

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: "`urn:wovyr:error:` and the code" }),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String(),
    code: choice(Object.keys(errorCodes), { $id: "ErrorCode" }),
    retryable: Type.Boolean({
      description: "Whether the same request may succeed later.",
    }),
    errors: Type.Optional(Type.Array(ViolationSchema)),
    instance: Type.Optional(
      Type.String({
        description: "Names this occurrence, for the operator's log.",
      }),
    ),
  },
  { $id: "Problem", description: "RFC 9457 problem details." },
);

export const BatchAnswer = Type.Object(
  {
    items: Type.Array(
      Type.Union([
        Type.Object({
          ok: Type.Literal(true),
          ...identity,
          created: Type.Boolean(),
          replayed: Type.Boolean(),
        }),
        Type.Object({ ok: Type.Literal(false), problem: ProblemSchema }),
      ]),
    ),
  },
  { $id: "BatchResult", description: "One item per start, in order." },
);

const origin = Type.Object(
  { id: nameSchema, runId: Type.String(), at: Type.Optional(Type.Integer({ minimum: 1 })) },
  { $id: "ForkOrigin" },
);

const summary = {
  ...identity,
  workflow: Type.String(),
  version: Type.String(),
  startedAt: timestamp,
  closedAt: Type.Optional(timestamp),
  correlationId: Type.Optional(Type.String()),
  parent: Type.Optional(Type.Object({ id: Type.String(), runId: Type.String() })),
  forkedFrom: Type.Optional(origin),
  resetFrom: Type.Optional(origin),
  attributes: Type.Record(Type.String(), attributeValue),
};

export const SummarySchema = Type.Object(summary, { $id: "InstanceSummary" });

const nextCursor = Type.Optional(
  Type.String({
    description: "Give it as `cursor` to get the next page; absent on the last one.",
  }),
);

export const InstanceList = Type.Object({ items: Type.Array(SummarySchema), nextCursor }, { $id: "InstanceList" });

export const DescriptionSchema = Type.Object(
  {
    ...summary,
    memo: Type.Record(Type.String(), anyValue),
    variables: Type.Record(Type.String(), anyValue),
    historyLength: Type.Integer(),
    waitingFor: Type.Optional(
      Type.Object(
        { kind: choice(["concurrency"]), of: Type.String(), key: Type.Optional(Type.String()) },
        { description: "While the run waits for its turn: whose limit it waits for." },
      ),
    ),
    activities: Type.Array(
      Type.Object({
        effect: Type.String(),
        name: Type.String(),
        state: Type.String(),
        attempt: Type.Integer(),
        lastFailure: Type.Optional(FailureSchema),
        nextRetryAt: Type.Optional(timestamp),
        deadLetter: Type.Optional(Type.String({ description: "While it is paused: the id of the dead letter to decide on." })),
        queue: Type.Optional(Type.String()),
        losses: Type.Optional(Type.Integer({ minimum: 1, description: "How often its process died while it ran." })),
        lastHeartbeat: Type.Optional(anyValue),
        circuit: Type.Optional(
          Type.Object(
            { state: choice(["open", "halfOpen"]), until: timestamp },
            { description: "While the circuit of the activity is not closed: how long its attempts are held back." },
          ),
        ),
        priority: Type.Optional(choice(priorities)),
        waitingFor: Type.Optional(
          Type.Object(
            { kind: choice(["place", "concurrency", "rateLimit"]), of: Type.Optional(Type.String()), key: Type.Optional(Type.String()) },
            { description: "While its attempt is due and has not begun: what it waits for, and whose limit that is." },
          ),
        ),
        task: Type.Optional(
          Type.Object(
            {
              state: choice(["waiting", "leased"]),
              requires: Type.Optional(Type.Array(Type.String())),
              since: Type.Optional(timestamp),
              worker: Type.Optional(Type.String()),
            },
            {
              description:
                "On a queue: whether the attempt waits for a worker, that has these labels, and since when; or which worker has it.",
            },
          ),
        ),
      }),
    ),
    timers: Type.Array(
      Type.Object({
        effect: Type.String(),
        purpose: Type.String(),
        dueAt: timestamp,
      }),
    ),
    awaitedEvents: Type.Array(Type.Object({ effect: Type.String(), name: Type.String(), key: Type.Optional(Type.String()) })),
    children: Type.Array(
      Type.Object({
        effect: Type.String(),
        workflow: Type.String(),
        id: Type.String(),
        runId: Type.String(),
      }),
    ),
    conditions: Type.Array(Type.String(), { description: "Effects that wait for a condition." }),
    compensations: Type.Array(
      Type.Object({
        effect: Type.String({ description: "Its own id." }),
        undoes: Type.String({ description: "The effect that it undoes." }),
        name: Type.String(),
        state: Type.String({ description: "One of pending, running, stuck, done, failed, skipped, resolved." }),
        tries: Type.Integer(),
        failure: Type.Optional(FailureSchema),
        deadLetter: Type.Optional(Type.String({ description: "While it is stuck: the id of its dead letter." })),
        note: Type.Optional(Type.String()),
      }),
      { description: "What is undone, or was when the run ended badly." },
    ),
    compensating: Type.Optional(FailureSchema),
    continuedFrom: Type.Optional(nameSchema),
    continuedTo: Type.Optional(nameSchema),
    attempt: Type.Integer({ minimum: 1, description: "Which attempt the run is by its workflow's retry policy." }),
    retryOf: Type.Optional(nameSchema),
    retriedAs: Type.Optional(nameSchema),
    bufferedEvents: Type.Array(Type.Object({ name: Type.String(), key: Type.Optional(Type.String()), receivedAt: timestamp })),
    unregistered: Type.Optional(
      Type.Literal(true, { description: "It waits for an orchestrator that has its workflow and version registered." }),
    ),
    waitingAt: Type.Array(Type.String(), {
      description: "`file:line:column` of the yields that the run waits at.",
    }),
    output: Type.Optional(anyValue),
    failure: Type.Optional(FailureSchema),
    compensation: Type.Optional(FailureSchema),
    parked: Type.Optional(FailureSchema),
    paused: Type.Optional(Type.Object({ at: timestamp, reason: Type.Optional(Type.String()) })),
    resetTo: Type.Optional(nameSchema),
  },
  { $id: "Instance" },
);

const deadLetter = {
  id: nameSchema,
  kind: choice(deadLetterKinds, { $id: "DeadLetterKind" }),
  workflow: Type.String({ description: "Of the run that the work belongs to." }),
  instanceId: nameSchema,
  runId: Type.String(),
  effect: Type.String(),
  name: Type.String({ description: "Of the activity, workflow or event." }),
  attempts: Type.Integer(),
  failure: FailureSchema,
  at: timestamp,
  decisions: Type.Array(choice(deadLetterDecisions), { description: "What can be decided." }),
};

export const DeadLetterSchema = Type.Object(deadLetter, { $id: "DeadLetter" });

export const DeadLetterList = Type.Object({ items: Type.Array(DeadLetterSchema), nextCursor }, { $id: "DeadLetterList" });

export const DeadLetterDetailsSchema = Type.Object(
  {
    ...deadLetter,
    version: Type.String(),
    input: Type.Optional(anyValue),
    seq: Type.Optional(Type.Integer({ minimum: 1, description: "Number of the history event that holds the input." })),
    failures: Type.Array(Type.Object({ attempt: Type.Integer(), at: timestamp, failure: FailureSchema }), {
      description: "The last failed attempts, at most 20.",
    }),
    firstFailedAt: timestamp,
    lastFailedAt: timestamp,
  },
  { $id: "DeadLetterDetails" },
);

export const HistoryEventSchema = Type.Object(
  {
    seq: Type.Integer({ minimum: 1 }),
    turn: Type.Integer({
      minimum: 1,
      description: "Number of the first event of the turn that recorded this one.",
    }),
    type: Type.String(),
    at: timestamp,
    data: Type.Record(Type.String(), anyValue),
  },
  { $id: "HistoryEvent" },
);

export const HistoryAnswer = Type.Object(
  {
    runId: Type.String(),
    items: Type.Array(HistoryEventSchema),
    nextSeq: Type.Optional(
      Type.Integer({
        description: "Give it as `fromSeq` to get the next page; absent on the last one.",
      }),
    ),
  },
  { $id: "History" },
);

export const QueryAnswer = Type.Object({ output: anyValue }, { $id: "QueryAnswer" });

export const UpdateAnswer = Type.Object(
  {
    id: nameSchema,
    runId: nameSchema,
    updateId: Type.String(),
    status: choice(["Completed", "Failed", "Open"]),
    output: Type.Optional(anyValue),
    failure: Type.Optional(FailureSchema),
  },
  { $id: "UpdateAnswer" },
);

export const PublishedSchema = Type.Object(
  {
    id: Type.String({ description: "The `id` of the event." }),
    delivered: Type.Integer({ minimum: 0, description: "How many runs waited for it." }),
    started: Type.Array(Type.Object({ workflow: Type.String(), id: nameSchema, runId: Type.String() }), {
      description: "The instances that it started.",
    }),
  },
  { $id: "Published" },
);

export const ImportAnswer = Type.Object({ items: Type.Array(InstanceRef) }, { $id: "Imported" });

export const DeleteAnswer = Type.Object(
  { deleted: Type.Integer({ minimum: 0, description: "How many runs there were." }) },
  { $id: "Deleted" },
);

export const BatchRef = Type.Object({ id: nameSchema }, { $id: "BatchRef" });

export const BatchSchema = Type.Object(
  {
    id: nameSchema,
    status,
    operation: Type.Union([
      batchOperation,
      Type.Object({
        type: choice(["decide"]),
        decision: choice(deadLetterDecisions),
        letters: deadLetterFilter,
        output: Type.Optional(anyValue),
        note: Type.Optional(Type.String()),
      }),
    ]),
    filter: batchFilter,
    total: Type.Optional(Type.Integer({ description: "Known when all have been found." })),
    done: Type.Integer({ minimum: 0 }),
    failed: Type.Integer({ minimum: 0 }),
    failures: Type.Array(Type.Object({ id: nameSchema, runId: Type.String(), code: Type.String(), message: Type.String() }), {
      description: "The first 20.",
    }),
    startedAt: timestamp,
    closedAt: Type.Optional(timestamp),
  },
  { $id: "BatchProgress" },
);

export const Accepted = Type.Object({ id: nameSchema }, { $id: "Accepted" });

// ── the cluster ──

const slots = Type.Array(Type.Integer({ minimum: 0 }));

export const ClusterNodeSchema = Type.Object(
  {
    node: Type.String(),
    url: Type.Optional(Type.String({ description: "Where others reach it; absent while it listens nowhere." })),
    release: Type.String(),
    workflows: Type.Array(Type.String({ description: "`name@version`" })),
    state: choice(["active", "draining"]),
    shards: slots,
    leaseUntil: timestamp,
  },
  { $id: "ClusterNode" },
);

export const ClusterSchema = Type.Object(
  { group: Type.String(), node: Type.String(), nodes: Type.Array(ClusterNodeSchema), shards: Type.Integer(), unowned: slots },
  { $id: "Cluster" },
);

export const Liveness = Type.Object({ status: Type.Literal("live") }, { $id: "Liveness" });

export const Readiness = Type.Object({ ready: Type.Boolean(), reason: Type.Optional(Type.String()) }, { $id: "Readiness" });
