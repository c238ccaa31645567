/** Runs on the real engine, and the graphs of their histories. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AnyWorkflow,
  activity,
  all,
  awaitEvent,
  child,
  compensateNow,
  condition,
  event,
  map,
  NonRetryableError,
  race,
  saga,
  select,
  sideEffect,
  sleep,
  spawn,
  step,
  Type,
  timeout,
  update,
  workflow,
} from "@wovyr/sdk";
import type { RunGraph } from "@wovyr/sdk/client";
import { createTestEnvironment } from "@wovyr/testing";
import { assertGraph, linesOf } from "./assert-graph.ts";

const work = activity("work", async (n: number) => n);
const broken = activity("broken", async () => {
  throw new NonRetryableError("for good");
});
const Go = event("go", Type.Number());

const never = activity("never", async (_: undefined, ctx) => {
  await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
});

type Env = Awaited<ReturnType<typeof createTestEnvironment>>;
type Started = { readonly env: Env; readonly graph: () => Promise<RunGraph> };

async function running(
  program: AnyWorkflow,
  then: (started: Started) => Promise<void>,
  others: readonly AnyWorkflow[] = [],
): Promise<void> {
  await using env = await createTestEnvironment({ workflows: [program, ...others], autoSkip: false });
  const handle = await env.start(program as never, undefined as never, { id: "run" });
  await env.settle();
  const graph = async () => {
    const drawn = await handle.graph();
    assertGraph(drawn);
    const { status } = await handle.describe();
    assert.equal(drawn.status, status);
    return drawn;
  };
  await then({ env, graph });
}

const lines = async (graph: () => Promise<RunGraph>) => linesOf(await graph());

test("steps follow one another; a finished run has an end", async () => {
  const program = workflow("steps", async function* () {
    yield* work(1);
    yield* sideEffect(() => 1);
    yield* step("inline", async () => 2);
    yield* sleep("1h");
  });
  await running(program, async ({ env, graph }) => {
    assert.deepEqual(await lines(graph), [
      "start steps Completed",
      "0 activity work Completed",
      "1 sideEffect side effect Completed",
      "2 activity inline Completed",
      "3 timer sleep 1h Waiting",
      "start → 0",
      "0 → 1",
      "1 → 2",
      "2 → 3",
    ]);
    await env.advance("1h");
    await env.settle();
    const drawn = await graph();
    assert.deepEqual(linesOf(drawn).slice(4, 6), ["3 timer sleep 1h Completed", "end Completed"]);
    assert.equal(drawn.status, "Completed");
    const timer = drawn.nodes.find(({ id }) => id === "3");
    assert.equal((timer?.dueAt?.getTime() ?? 0) - (timer?.startedAt?.getTime() ?? 0), 3_600_000);
    assert.deepEqual(timer?.endedAt, timer?.dueAt);
  });
});

test("branches begin at a node of their own and join in what comes next", async () => {
  const program = workflow("parallel", async function* () {
    yield* all([
      work(1),
      async function* () {
        yield* work(2);
        yield* race({ event: awaitEvent(Go), late: sleep("1h") });
      },
    ]);
    yield* map([1, 2], (n) => work(n));
  });
  await running(program, async ({ env, graph }) => {
    await env.advance("1h");
    await env.settle();
    assert.deepEqual(await lines(graph), [
      "start parallel Completed",
      "0 branches 2 branches Completed",
      "0.0 activity work Completed",
      "0.1/0 activity work Completed",
      "0.1/1 branches 2 branches Completed",
      "0.1/1.0 event go Cancelled",
      "0.1/1.1 timer sleep 1h Completed",
      "1 branches 2 branches Completed",
      "1.0 activity work Completed",
      "1.1 activity work Completed",
      "end Completed",
      "start → 0",
      "0 → 0.0 branch",
      "0 → 0.1/0 branch",
      "0.1/0 → 0.1/1",
      "0.1/1 → 0.1/1.0 branch",
      "0.1/1 → 0.1/1.1 branch",
      "0.0 → 1 join",
      "0.1/1.0 → 1 join",
      "0.1/1.1 → 1 join",
      "1 → 1.0 branch",
      "1 → 1.1 branch",
      "1.0 → end join",
      "1.1 → end join",
    ]);
  });
});

test("an activity shows its attempts; one that failed for good fails the run there", async () => {
  let tries = 0;
  const flaky = activity("flaky", { retry: { maxAttempts: 3, initialDelay: "1m" } }, async () => {
    tries += 1;
    if (tries < 3) throw new Error(`try ${tries}`);
  });
  const program = workflow("failing", async function* () {
    yield* flaky();
    yield* broken();
  });
  await running(program, async ({ env, graph }) => {
    const retrying = (await graph()).nodes.find(({ id }) => id === "0");
    assert.equal(retrying?.state, "Retrying");
    assert.equal(retrying?.attempts?.length, 1);
    assert.deepEqual(retrying?.attempts?.[0]?.failure, { name: "Error", message: "try 1" });
    assert.ok((retrying?.attempts?.[0]?.nextAt?.getTime() ?? 0) > (retrying?.startedAt?.getTime() ?? Number.POSITIVE_INFINITY));
    await env.advance("1h");
    await env.settle();
    const drawn = await graph();
    assert.deepEqual(linesOf(drawn), [
      "start failing Completed",
      "0 activity flaky Completed",
      "1 activity broken Failed",
      "end Failed",
      "start → 0",
      "0 → 0 retry",
      "0 → 1",
      "1 → end",
    ]);
    const attempts = drawn.nodes.find(({ id }) => id === "0")?.attempts ?? [];
    assert.deepEqual(
      attempts.map(({ number, failure, endedAt }) => [number, failure?.message, endedAt !== undefined]),
      [
        [1, "try 1", true],
        [2, "try 2", true],
        [3, undefined, true],
      ],
    );
    assert.equal(drawn.nodes.at(-1)?.failure?.message, 'activity "broken" failed after 1 attempt: for good');
  });
});

test("a cancelled run shows what was cancelled, its clean-up, and its end", async () => {
  const program = workflow("cancelled", async function* () {
    try {
      yield* all([never(), sleep("1 day"), awaitEvent(Go)]);
    } finally {
      yield* work(1);
    }
  });
  await using env = await createTestEnvironment({ workflows: [program] });
  const handle = await env.start(program, undefined, { id: "run" });
  await env.settle();
  assert.deepEqual(linesOf(await handle.graph()).slice(1, 5), [
    "0 branches 3 branches Running",
    "0.0 activity never Running",
    "0.1 timer sleep 1d Waiting",
    "0.2 event go Waiting",
  ]);
  await handle.cancel({ reason: "enough" });
  await assert.rejects(handle.result());
  const drawn = await handle.graph();
  assertGraph(drawn);
  const bound = drawn.nodes.find(({ id }) => id === "!cleanup");
  assert.equal(bound?.state, "Cancelled");
  assert.deepEqual(
    linesOf(drawn).filter((line) => !line.includes("!cleanup")),
    [
      "start cancelled Completed",
      "0 branches 3 branches Cancelled",
      "0.0 activity never Cancelled",
      "0.1 timer sleep 1d Cancelled",
      "0.2 event go Cancelled",
      "1 activity work Completed",
      "end Cancelled",
      "start → 0",
      "0 → 0.0 branch",
      "0 → 0.1 branch",
      "0 → 0.2 branch",
      "0.0 → 1 join",
      "0.1 → 1 join",
      "0.2 → 1 join",
      "1 → end",
    ],
  );
});

test("a terminated run ends where it stood", async () => {
  const program = workflow("terminated", async function* () {
    yield* awaitEvent(Go);
  });
  await using env = await createTestEnvironment({ workflows: [program] });
  const handle = await env.start(program, undefined, { id: "run" });
  await handle.terminate({ reason: "enough" });
  await assert.rejects(handle.result());
  assert.deepEqual(linesOf(await handle.graph()), [
    "start terminated Completed",
    "0 event go Cancelled",
    "end Terminated",
    "start → 0",
    "0 → end",
  ]);
});

test("a task goes on beside what follows, and joins what began after its end", async () => {
  const program = workflow("tasks", async function* () {
    const task = yield* spawn(async function* () {
      yield* sleep("2h");
      yield* work(1);
    });
    yield* sleep("1h");
    yield* select({ task });
    yield* work(2);
  });
  await running(program, async ({ env, graph }) => {
    await env.advance("2h");
    await env.settle();
    assert.deepEqual(await lines(graph), [
      "start tasks Completed",
      "0 scope 1 branch Completed",
      "0.0/0 timer sleep 2h Completed",
      "0.0/1 activity work Completed",
      "1 timer sleep 1h Completed",
      "3 activity work Completed",
      "end Completed",
      "start → 0",
      "0 → 0.0/0 branch",
      "0.0/0 → 0.0/1",
      "0 → 1",
      "1 → 3",
      "0.0/1 → 3 join",
      "3 → end",
    ]);
  });
});

test("a time limit stands beside what it limits, and leads on only when it passed", async () => {
  const limits = workflow("limits", async function* () {
    try {
      yield* awaitEvent(Go, { timeout: "1h" });
    } catch {}
    try {
      yield* timeout(sleep("1 day"), "1m");
    } catch {}
    yield* timeout(work(1), "1m");
  });
  await running(limits, async ({ env, graph }) => {
    await env.advance("1h");
    await env.advance("1m");
    await env.settle();
    assert.deepEqual(await lines(graph), [
      "start limits Completed",
      "0 event go TimedOut",
      "0!timeout timer timeout 1h Completed",
      "1 scope timeout TimedOut",
      "1.0 timer sleep 1d Cancelled",
      "1!timeout timer timeout 1m Completed",
      "2 scope timeout Completed",
      "2.0 activity work Completed",
      "2!timeout timer timeout 1m Cancelled",
      "end Completed",
      "start → 0",
      "0 → 0!timeout branch",
      "0 → 1",
      "0!timeout → 1 join",
      "1 → 1.0 branch",
      "1 → 1!timeout branch",
      "1.0 → 2 join",
      "1!timeout → 2 join",
      "2 → 2.0 branch",
      "2 → 2!timeout branch",
      "2.0 → end join",
    ]);
  });
});

test("a child's node says which run it is", async () => {
  const inner = workflow("inner", async function* () {
    yield* awaitEvent(Go);
  });
  const outer = workflow("outer", async function* () {
    yield* child(inner, undefined, { id: "the-child" });
  });
  await running(
    outer,
    async ({ env, graph }) => {
      const open = (await graph()).nodes.find(({ id }) => id === "0");
      assert.equal(open?.state, "Running");
      assert.equal(open?.childRun?.workflow, "inner");
      assert.equal(open?.childRun?.id, "the-child");
      const { nodes } = await env.handle(inner, "the-child").graph();
      assert.deepEqual(
        nodes.map(({ id, state }) => [id, state]),
        [
          ["start", "Completed"],
          ["0", "Waiting"],
        ],
      );
      await env.handle(inner, "the-child").terminate();
      await env.settle();
      assert.deepEqual((await lines(graph)).slice(1, 3), ["0 child inner Terminated", "end Failed"]);
    },
    [inner],
  );
});

test("a parked run shows where it stands and why", async () => {
  const v1 = workflow("parked", async function* () {
    yield* work(1);
    yield* awaitEvent(Go);
  });
  const v2 = workflow("parked", async function* () {
    yield* sleep("1h");
    yield* awaitEvent(Go);
  });
  await using env = await createTestEnvironment({ workflows: [v1] });
  const handle = await env.start(v1, undefined, { id: "run" });
  await env.settle();
  await env.restart({ workflows: [v2] });
  await env.send("run", Go, 1).catch(() => {});
  await env.settle();
  const drawn = await handle.graph();
  assertGraph(drawn);
  assert.equal(drawn.status, "Parked");
  assert.deepEqual(linesOf(drawn), [
    "start parked Completed",
    "0 activity work Completed",
    "1 event go Waiting",
    "end parked Parked",
    "start → 0",
    "0 → 1",
    "1 → end",
  ]);
  assert.equal(drawn.nodes.at(-1)?.failure?.code, "HISTORY_DIVERGED");
});

test("a start in the future is a start that is not yet", async () => {
  const program = workflow("later", async function* () {});
  await using env = await createTestEnvironment({ workflows: [program], autoSkip: false });
  const handle = await env.start(program, undefined, { id: "run", delay: "1h" });
  const early = await handle.graph();
  assertGraph(early);
  assert.equal(early.status, "Scheduled");
  assert.deepEqual(linesOf(early), ["start later Scheduled"]);
  assert.ok(early.nodes[0]?.dueAt);
  await env.advance("1h");
  await env.settle();
  assert.deepEqual(linesOf(await handle.graph()), ["start later Completed", "end Completed", "start → end"]);
});

test("effects with ids of their own stand where they were asked for, as far as history tells", async () => {
  const program = workflow("named", async function* () {
    yield* work(1).with({ id: "first" });
    yield* all([work(1).with({ id: "a" }), work(2), work(3).with({ id: "b.1" })]);
    yield* work(4).with({ id: "last" });
  });
  await running(program, async ({ graph }) => {
    const drawn = await graph();
    assert.deepEqual(
      drawn.nodes.map(({ id }) => id),
      ["start", "@first", "@a", "1", "1.1", "@b.1", "@last", "end"].map((id) => id.replace(/^1/, "0")),
    );
    const next = drawn.edges.map(({ from, to }) => `${from} ${to}`);
    for (const edge of ["start @first", "@first @a", "@first 0", "0 0.1", "0 @b.1", "@last end"]) assert.ok(next.includes(edge), edge);
  });
});

test("handlers begin at the start by a message; conditions are waits", async () => {
  const Add = update("add", { input: Type.Number(), output: Type.Number() });
  const program = workflow("handlers", async function* (_: undefined, ctx) {
    let sum = 0;
    ctx.on(Go, async function* (n) {
      sum += yield* work(n);
    });
    ctx.onUpdate(Add, {
      handler: async function* (n: number) {
        sum += yield* work(n);
        return sum;
      },
    });
    yield* condition(() => sum >= 3);
  });
  await using env = await createTestEnvironment({ workflows: [program] });
  const handle = await env.start(program, undefined, { id: "run" });
  await handle.send(Go, 1);
  await env.settle();
  assert.equal(await handle.update(Add, 2), 3);
  await env.settle();
  const drawn = await handle.graph();
  assertGraph(drawn);
  assert.deepEqual(linesOf(drawn), [
    "start handlers Completed",
    "0 event condition Completed",
    "on:go/0 event go Completed",
    "on:go/0/0 activity work Completed",
    "u:0 event update add Completed",
    "u:0/0 activity work Completed",
    "end Completed",
    "start → 0",
    "start → on:go/0 event",
    "on:go/0 → on:go/0/0 branch",
    "start → u:0 event",
    "u:0 → u:0/0 branch",
    "0 → end",
    "on:go/0 → end join",
    "on:go/0/0 → end join",
    "u:0 → end join",
    "u:0/0 → end join",
  ]);
});

test("what is undone follows on what was done: of the run, of a saga, and where the code asks for it", async () => {
  const program = workflow("undoing", async function* () {
    yield* work(0).compensate(async function* () {
      yield* sleep("1h");
      yield* broken();
    });
    yield* work(1).compensate(() => work(-1));
    yield* compensateNow();
  });
  const undone = workflow("undone", async function* () {
    yield* work(0).compensate(async function* () {
      yield* sleep("1h");
      yield* broken();
    });
    yield* work(1).compensate(() => work(-1));
    yield* saga(async function* () {
      yield* work(2).compensate(() => work(-2));
      yield* broken();
    });
  });
  await running(program, async ({ env, graph }) => {
    assert.deepEqual(await lines(graph), [
      "start undoing Completed",
      "0 activity work Completed",
      "1 activity work Completed",
      "~1 compensation undo work Completed",
      "~1/0 activity work Completed",
      "~0 compensation undo work Running",
      "~0/0 timer sleep 1h Waiting",
      "start → 0",
      "0 → 1",
      "1 → ~1",
      "~1 → ~1/0 branch",
      "~1 → ~0",
      "~1/0 → ~0 join",
      "~0 → ~0/0 branch",
      "1 → ~1 compensation",
      "0 → ~0 compensation",
    ]);
    await env.advance("1h");
    assert.ok((await lines(graph)).includes("~0 compensation undo work Failed"));
  });
  await running(undone, async ({ env, graph }) => {
    assert.deepEqual((await lines(graph)).slice(0, 9), [
      "start undone Completed",
      "0 activity work Completed",
      "1 activity work Completed",
      "2 scope 1 branch Compensated",
      "2.0/0 activity work Completed",
      "2.0/1 activity broken Failed",
      "~2 compensation undo work Completed",
      "~2/0 activity work Completed",
      "~1 compensation undo work Completed",
    ]);
    await env.advance("1h");
    assert.ok((await lines(graph)).includes("~0 compensation undo work Parked"));
    await env.client.handle("run").retryCompensation("~0");
    await env.settle();
    assert.deepEqual(
      (await lines(graph)).filter((line) => line.includes("~0")),
      [
        "~0 compensation undo work Running",
        "~0/0 timer sleep 1h Completed",
        "~0/1 activity broken Failed",
        "~0#1/0 timer sleep 1h Waiting",
        "~1 → ~0",
        "~1/0 → ~0 join",
        "~0 → ~0/0 branch",
        "~0/0 → ~0/1",
        "~0/1 → ~0#1/0",
        "0 → ~0 compensation",
      ],
    );
    await env.advance("1h");
    await env.client.handle("run").skipCompensation("~0");
    await env.settle();
    assert.equal((await graph()).status, "CompensationFailed");
  });
});

test("an activity that is paused, tried anew and resolved", async () => {
  const program = workflow("paused", { onExhausted: "pause" }, async function* () {
    yield* broken();
  });
  await running(program, async ({ env, graph }) => {
    const state = async () => {
      const { nodes } = await graph();
      const node = nodes.find(({ id }) => id === "0");
      return [node?.state, node?.failure?.code, node?.attempts?.length];
    };
    const letter = async () => {
      for await (const { id } of env.deadLetters.list()) return id;
      return "";
    };
    assert.deepEqual(await state(), ["Paused", "NON_RETRYABLE", 1]);
    await env.deadLetters.retry(await letter());
    await env.settle();
    assert.deepEqual(await state(), ["Paused", "NON_RETRYABLE", 2]);
    await env.deadLetters.resolve(await letter());
    await env.settle();
    assert.deepEqual(await state(), ["Completed", undefined, 2]);
  });
});

test("compensations in parallel are branches beside each other", async () => {
  const program = workflow("parallel", { compensation: { order: "parallel" } }, async function* () {
    yield* work(0).compensate(() => work(-1));
    yield* work(1).compensate(() => sleep("1h"));
    throw new Error("enough");
  });
  await running(program, async ({ graph }) => {
    assert.deepEqual((await lines(graph)).slice(7), [
      "start → 0",
      "0 → 1",
      "1 → ~1",
      "~1 → ~1/0 branch",
      "1 → ~0",
      "~0 → ~0/0 branch",
      "1 → ~1 compensation",
      "0 → ~0 compensation",
    ]);
  });
});
