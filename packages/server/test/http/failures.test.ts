/** What failed, how often, why and what comes next, as the client and REST show it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ActivityError, activity, child, sleep, TimeoutError, WorkflowError, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";

class OutOfStock extends Error {
  override readonly name = "OutOfStock";
  readonly sku: string;
  readonly since: Date;
  constructor(sku: string, since: Date, options?: ErrorOptions) {
    super(`no ${sku} left`, options);
    this.sku = sku;
    this.since = since;
  }
}

const since = new Date("2030-01-01T00:00:00Z");
const pick = activity("pick", { errors: [OutOfStock], retry: { maxAttempts: 1 } }, async () => {
  throw new OutOfStock("pen", since, { cause: new AggregateError([new TypeError("shelf 1"), "shelf 2"], "nowhere") });
});
const shop = workflow("shop", { errors: [OutOfStock] }, async function* () {
  yield* pick();
});
const mall = workflow("mall", { errors: [OutOfStock] }, async function* () {
  yield* child(shop);
});

const patient = workflow("patient", async function* () {
  yield* sleep("1 day");
});

const reset = () => Object.assign(new Error("connection reset"), { code: "ECONNRESET" });
const unreachable = activity(
  "unreachable",
  { retry: { initialDelay: 1, jitter: "none" }, circuitBreaker: { failureThreshold: 1, openFor: "1 day" } },
  async (_: undefined, ctx) => {
    ctx.heartbeat({ row: 7n, at: since });
    throw reset();
  },
);
const caller = workflow("caller", async function* () {
  yield* unreachable(undefined);
});

const stubborn = workflow("stubborn", { retry: { maxAttempts: 2, initialDelay: 1, jitter: "none" } }, async function* () {
  yield* sleep(1);
  throw reset();
});

let orchestrator: Orchestrator;
let url: string;
let both: readonly (readonly [way: "http" | "local", client: Client])[];
before(async () => {
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  orchestrator = await createOrchestrator({ workflows: [shop, mall, patient, caller, stubborn], store: memoryStore(), log: silent });
  url = await orchestrator.listen({ port: 0 });
  both = [
    ["http", createClient({ url })],
    ["local", orchestrator.client],
  ];
});
after(() => orchestrator.close());

type FailureJson = {
  readonly name: string;
  readonly code?: string;
  readonly kind?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly cause?: FailureJson;
};
type Json = {
  readonly status?: string;
  readonly failure?: FailureJson;
  readonly attempt?: number;
  readonly retryOf?: string;
  readonly retriedAs?: string;
  readonly activities?: readonly { readonly circuit?: { readonly state: string; readonly until: string } }[];
  readonly items?: readonly { readonly data: { readonly run?: string } }[];
};
const json = async (path: string): Promise<Json> => (await fetch(`${url}/v1/instances/${path}`)).json() as Promise<Json>;

test("H071 H072 class, fields, causes and the errors of an AggregateError arrive at the caller, through a parent", async () => {
  for (const [way, client] of both) {
    const run = await client.start(mall);
    await assert.rejects(run.result(), (error: unknown) => {
      assert.ok(error instanceof WorkflowError && error.cause instanceof WorkflowError, way);
      const failed = error.cause.cause;
      assert.ok(failed instanceof ActivityError, way);
      assert.deepEqual([failed.activity, failed.attempts, failed.kind], ["pick", 1, "transient"]);
      const { cause } = failed;
      assert.ok(cause instanceof OutOfStock, way);
      assert.deepEqual([cause.sku, cause.since], ["pen", since]);
      assert.ok(cause.cause instanceof AggregateError, way);
      assert.equal(cause.cause.message, "nowhere");
      assert.deepEqual(
        cause.cause.errors.map((each: unknown) => (each instanceof TypeError ? each.message : each)),
        ["shelf 1", "shelf 2"],
      );
      return true;
    });
    const { failure } = await json(`${run.id}/result`);
    assert.deepEqual([failure?.name, failure?.kind, failure?.cause?.name], ["WorkflowError", "transient", "ActivityError"]);
    assert.deepEqual([failure?.cause?.cause?.name, failure?.cause?.cause?.fields?.sku], ["OutOfStock", "pen"]);
  }
});

test("a start says how long its run may take, and the failure which limit passed", async () => {
  for (const [way, client] of both) {
    const run = await client.start(patient, undefined, { timeout: { run: 50, execution: "1h" } });
    await assert.rejects(run.result(), (error: unknown) => {
      assert.ok(error instanceof WorkflowError && error.cause instanceof TimeoutError, way);
      assert.deepEqual([error.status, error.cause.timeout, error.cause.limit, error.cause.code], ["TimedOut", "run", 50, "TIMED_OUT"]);
      return true;
    });
    const { status, failure } = await json(run.id);
    assert.deepEqual(
      [status, failure?.code, failure?.kind, failure?.fields],
      ["TimedOut", "TIMED_OUT", "timeout", { timeout: "run", limit: 50 }],
    );
    await assert.rejects(client.start(patient, undefined, { timeout: "soon" as never }), { code: "INVALID_DURATION" });
  }
  for (const timeout of ["soon", { runs: 5 }, { run: -1 }, [], null]) {
    const response = await fetch(`${url}/v1/workflows/patient/instances`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ timeout }),
    });
    assert.ok(response.status === 422 || response.status === 400, `${response.status} for ${JSON.stringify(timeout)}`);
  }
  for await (const { status } of orchestrator.client.list({ workflow: "patient" })) assert.equal(status, "TimedOut");
});

test("what an attempt failed with and told, and the circuit that holds the next one back, are in the description", async () => {
  for (const [way, client] of both) {
    const run = await client.start(caller);
    // The circuit is of this process: the second run finds it open before its first attempt.
    const isShown = way === "http" ? "lastFailure" : "circuit";
    let shown = (await run.describe()).activities[0];
    for (; shown?.[isShown] === undefined; shown = (await run.describe()).activities[0])
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(shown.circuit !== undefined, way);
    assert.equal(shown.circuit.state, "open", way);
    assert.ok(shown.circuit.until instanceof Date, way);
    if (way === "http") {
      assert.equal(shown.lastFailure?.kind, "infrastructure");
      assert.deepEqual(shown.lastHeartbeat, { row: 7n, at: since });
      const [activity] = (await json(run.id)).activities ?? [];
      assert.deepEqual([activity?.circuit?.state, activity?.circuit?.until], ["open", shown.circuit.until.toISOString()]);
    }
    await run.terminate();
  }
});

test("a run that was tried again names the one before it, and is named by it", async () => {
  for (const [way, client] of both) {
    const run = await client.start(stubborn);
    await assert.rejects(run.result(), WorkflowError);
    const last = await client.handle(run.id).describe();
    assert.deepEqual([last.attempt, last.retryOf, last.retriedAs, last.status], [2, run.runId, undefined, "Failed"], way);
    const first = await json(`${run.id}?runId=${run.runId}`);
    assert.deepEqual(
      [first.attempt, first.retryOf, first.retriedAs, first.failure?.kind],
      [1, undefined, last.runId, "infrastructure"],
      way,
    );
    const history = await json(`${run.id}/history?runId=${run.runId}`);
    assert.equal(history.items?.at(-1)?.data.run, last.runId);
  }
});
