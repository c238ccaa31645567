/** Activities on task queues, with the test as their worker, in virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ActivityError,
  activity,
  all,
  OutcomeUnknownError,
  race,
  sleep,
  TimeoutError,
  Type,
  type WovyrError,
  workflow,
} from "@wovyr/sdk";
import type { ActivityTask } from "@wovyr/sdk/internal";
import type { TestEnvironment } from "@wovyr/testing";
import { inCase, inEachCache } from "../engine/case.ts";

const once = { maxAttempts: 1 } as const;
const render = activity.contract("render", { queue: "gpu", input: Type.Number(), output: Type.Number() });
const rendering = workflow("rendering", async function* (n: number) {
  return yield* render(n);
});
const poll = (env: TestEnvironment, max = 10, more: object = {}) => env.tasks.pollTasks({ queues: ["gpu"], worker: "w1", max, ...more });
const only = async (env: TestEnvironment, more: object = {}): Promise<ActivityTask> => {
  const tasks = await poll(env, 10, more);
  assert.equal(tasks.length, 1, `${tasks.length} tasks`);
  return tasks[0] as ActivityTask;
};
const refused = (call: Promise<unknown>) =>
  assert.rejects(call, (error: WovyrError) => {
    assert.equal(error.code, "TASK_NOT_HELD");
    return true;
  });

test("a worker gets the task of a queued activity, and the run goes on with what it says; nothing of it is left", async () => {
  await inEachCache({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 20, { id: "r" });
    const started = env.now();
    assert.deepEqual((await run.describe()).activities[0]?.task, { state: "waiting", requires: [], since: started });
    const task = await only(env);
    assert.deepEqual((await run.describe()).activities[0]?.task, { state: "leased", worker: "w1" });
    const { token, ...rest } = task;
    assert.match(token, /^[0-9a-f]{48}$/);
    assert.deepEqual(rest, {
      queue: "gpu",
      activity: "render",
      input: 20,
      attempt: 1,
      idempotencyKey: `${run.runId}/0`,
      instanceId: "r",
      runId: run.runId,
      workflow: "rendering",
    });
    const [shown] = (await run.describe()).activities;
    assert.deepEqual([shown?.state, shown?.queue], ["Running", "gpu"]);
    assert.deepEqual(await poll(env), []);
    assert.deepEqual(await env.tasks.completeTask(token, 40), { replayed: false });
    assert.equal(await run.result(), 40);
    assert.deepEqual(await env.tasks.completeTask(token, 40), { replayed: true });
    await refused(env.tasks.completeTask(token, 41));
    await refused(env.tasks.heartbeatTask(token));
    assert.deepEqual(await env.tasks.listQueues(), []);
  });
});

test("whoever waits for a task is woken by it, and gets no more than it asked for", async () => {
  const many = workflow("many", async function* () {
    return yield* all([render(1), render(2), render(3)]);
  });
  await inCase({ workflows: [many], queues: "workers" }, async (env) => {
    const first = poll(env, 1, { wait: 60_000 });
    const second = poll(env, 1, { wait: 60_000, worker: "w2" });
    const run = await env.start(many);
    const tasks = [...(await first), ...(await second), ...(await poll(env, 1))];
    assert.deepEqual(tasks.map(({ input }) => input).sort(), [1, 2, 3]);
    for (const { token, input } of tasks) await env.tasks.completeTask(token, Number(input) * 10);
    assert.deepEqual(await run.result(), [10, 20, 30]);
    const before = env.now().getTime();
    assert.deepEqual(await poll(env, 1, { wait: 5_000 }), []);
    assert.ok(env.now().getTime() - before >= 5_000);
  });
});

test("polls that come while one is being looked for are looked for as well, and together get no task twice", async () => {
  const many = workflow("many", async function* () {
    return (yield* all([render(1), render(2), render(3), render(4)])).length;
  });
  await inCase({ workflows: [many], queues: "workers" }, async (env) => {
    const run = await env.start(many);
    const polls = await Promise.all(["a", "b", "c", "d", "e"].map((worker) => poll(env, 1, { worker })));
    const tasks = polls.flat();
    assert.deepEqual(tasks.map(({ input }) => input).sort(), [1, 2, 3, 4]);
    assert.ok(polls.every((got) => got.length <= 1));
    for (const { token, input } of tasks) await env.tasks.completeTask(token, Number(input));
    assert.equal(await run.result(), 4);
  });
});

test("H120 of several queues each gets its share", async () => {
  const on = (queue: string) =>
    workflow(`on-${queue}`, async function* (n: number) {
      return yield* render(n).with({ queue });
    });
  const [a, b, c] = [on("a"), on("b"), on("c")];
  await inCase({ workflows: [a, b, c], queues: "workers" }, async (env) => {
    for (let n = 0; n < 20; n += 1) await env.start(a, n);
    await env.start(b, 1);
    await env.start(c, 1);
    const seen: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const tasks = await env.tasks.pollTasks({ queues: ["a", "b", "c"], worker: "w", max: 4 });
      assert.equal(tasks.length, 4);
      seen.push(...tasks.map((task) => task.queue));
    }
    assert.ok(seen.includes("b") && seen.includes("c"), seen.join());
  });
});

test("a failure is judged by the run: retried by its policy, given up when the worker says so", async () => {
  const flaky = activity.contract("flaky", {
    queue: "gpu",
    output: Type.String(),
    retry: { maxAttempts: 3, initialDelay: "10s", backoff: "exponential", jitter: "none" },
  });
  const flow = workflow("flow", async function* () {
    return yield* flaky();
  });
  await inEachCache({ workflows: [flow], queues: "workers" }, async (env) => {
    const run = await env.start(flow);
    const first = await only(env);
    await env.tasks.heartbeatTask(first.token, { details: { row: 7 } });
    await env.tasks.failTask(first.token, { name: "Error", message: "no paper" });
    assert.deepEqual(await poll(env), []);
    await env.advance("9s");
    assert.deepEqual(await poll(env), []);
    await env.advance("1s");
    const second = await only(env);
    assert.deepEqual([second.attempt, second.lastHeartbeat, second.idempotencyKey], [2, { row: 7 }, first.idempotencyKey]);
    await env.tasks.failTask(second.token, { name: "NonRetryableError", message: "no printer", code: "NON_RETRYABLE" });
    await assert.rejects(run.result(), (error: Error) => {
      const cause = error.cause as ActivityError;
      assert.equal(cause.attempts, 2);
      assert.equal((cause.cause as Error).message, "no printer");
      return true;
    });
  });
});

test("an output that does not fit the schema is a failure of the attempt", async () => {
  const flow = workflow("flow", async function* () {
    return yield* render(1).with({ retry: once });
  });
  await inCase({ workflows: [flow], queues: "workers" }, async (env) => {
    const run = await env.start(flow);
    await env.tasks.completeTask((await only(env)).token, "no number");
    await assert.rejects(run.result(), (error: Error) => ((error.cause as Error).cause as WovyrError).code === "INVALID_OUTPUT");
  });
});

test("H059 a worker that is silent for longer than its lease loses the task; the loss is counted, and the next one gets it with what was told", async () => {
  await inEachCache({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    const first = await only(env, { lease: 10_000 });
    await env.tasks.heartbeatTask(first.token, { details: "half", lease: 10_000 });
    await env.advance("9s");
    assert.deepEqual(await poll(env), []);
    await env.advance("1s");
    const second = await only(env, { worker: "w2" });
    assert.deepEqual([second.attempt, second.lastHeartbeat], [1, "half"]);
    assert.equal((await run.describe()).activities[0]?.losses, 1);
    // Told again of the same loss, the run counts it once.
    env.engine.deliver(
      { tenant: "default", run: run.runId },
      { fact: { type: "AttemptLost", effect: "0", attempt: 1, cause: "crash", losses: 0 } },
    );
    await env.settle();
    assert.equal((await run.describe()).activities[0]?.losses, 1);
    await env.tasks.heartbeatTask(second.token);
    // H063: the one that thaws is refused, whatever it says.
    await refused(env.tasks.completeTask(first.token, 5));
    await refused(env.tasks.failTask(first.token, { name: "Error", message: "late" }));
    await refused(env.tasks.heartbeatTask(first.token));
    await refused(env.tasks.releaseTask(first.token));
    assert.deepEqual(await env.tasks.heartbeatWorker("w1", { state: "Busy", queues: ["gpu"], tokens: [first.token, second.token] }), {
      lost: [first.token],
    });
    await env.tasks.completeTask(second.token, 2);
    assert.equal(await run.result(), 2);
  });
});

test("H058 signs of life of the worker keep a task for as long as it takes: one attempt, none lost", async () => {
  await inCase({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    const { token } = await only(env, { lease: 10_000 });
    for (let beat = 0; beat < 20; beat += 1) {
      await env.advance("9s");
      const { lost } = await env.tasks.heartbeatWorker("w1", { state: "Busy", queues: ["gpu"], tokens: [token], lease: 10_000 });
      assert.deepEqual(lost, []);
      assert.deepEqual(await poll(env), []);
    }
    await env.tasks.completeTask(token, 3);
    assert.equal(await run.result(), 3);
    assert.equal((await env.history(run.id)).filter(({ type }) => type === "AttemptLost").length, 0);
  });
});

test("an activity whose workers are lost again and again fails, with a code that says so", async () => {
  await inEachCache({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    for (let loss = 0; loss < 5; loss += 1) {
      await only(env, { lease: 1_000 });
      await env.advance("1s");
    }
    assert.deepEqual(await poll(env), []);
    await assert.rejects(run.result(), (error: Error) => {
      const cause = (error.cause as Error).cause as WovyrError;
      assert.equal(cause.code, "ATTEMPTS_LOST");
      assert.match(cause.message, /lost 5 times with its worker \(queue "gpu"\)/);
      return true;
    });
  });
});

test("one that runs once at most is not made again after a loss, nor after a time-out; one that nobody had taken may wait", async () => {
  const charge = activity.contract("charge", { queue: "gpu", semantics: "atMostOnce", timeout: { startToClose: "1m" } });
  const flow = workflow("flow", async function* () {
    try {
      yield* charge();
      return "charged";
    } catch (error) {
      return ((error as Error).cause as Error).name;
    }
  });
  await inEachCache({ workflows: [flow], queues: "workers" }, async (env) => {
    const lost = await env.start(flow);
    await env.restart();
    assert.equal((await only(env, { lease: 10_000 })).semantics, "atMostOnce");
    await env.advance("10s");
    assert.equal(await lost.result(), OutcomeUnknownError.name);
    const late = await env.start(flow);
    const { token } = await only(env, { lease: 600_000 });
    await env.advance("1m");
    assert.equal(await late.result(), OutcomeUnknownError.name);
    await refused(env.tasks.completeTask(token));
    const done = await env.start(flow);
    await env.tasks.completeTask((await only(env)).token);
    assert.equal(await done.result(), "charged");
  });
});

test("time limits hold for what waits in a queue and for what a worker has", async () => {
  const limited = (timeout: object) =>
    activity.contract("limited", { queue: "gpu", timeout, retry: { maxAttempts: 2, initialDelay: "1s", jitter: "none" } });
  const flow = (name: string, timeout: object) =>
    workflow(name, async function* () {
      try {
        yield* limited(timeout)();
      } catch (error) {
        const { cause, attempts } = error as ActivityError;
        assert.ok(cause instanceof TimeoutError);
        return [cause.timeout, cause.limit, attempts];
      }
      return [];
    });
  const toStart = flow("to-start", { scheduleToStart: "5s" });
  const toClose = flow("to-close", { startToClose: "7s" });
  const allToClose = flow("all-to-close", { scheduleToClose: "20s", startToClose: "9s" });
  const silent = flow("silent", { heartbeat: "3s" });
  await inCase({ workflows: [toStart, toClose, allToClose, silent], queues: "workers" }, async (env) => {
    const waiting = await env.start(toStart);
    const begun = env.now().getTime();
    assert.deepEqual(await waiting.result(), ["scheduleToStart", 5_000, 1]);
    assert.equal(env.now().getTime() - begun, 5_000);

    const slow = await env.start(toClose);
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      assert.equal((await only(env, { lease: 600_000 })).attempt, attempt);
      await env.advance("8s");
    }
    assert.deepEqual(await slow.result(), ["startToClose", 7_000, 2]);

    const whole = await env.start(allToClose);
    await only(env, { lease: 600_000 });
    await env.advance("10s");
    const { token } = await only(env, { lease: 600_000 });
    await env.advance("10s");
    assert.deepEqual(await whole.result(), ["startToClose", 9_000, 2]);
    await refused(env.tasks.completeTask(token));

    const quiet = await env.start(silent);
    const first = await only(env, { lease: 600_000 });
    for (let beat = 0; beat < 5; beat += 1) {
      await env.advance("2s");
      await env.tasks.heartbeatTask(first.token, { details: beat });
    }
    // That its process is alive says nothing of the attempt.
    await env.advance("2s");
    await env.tasks.heartbeatWorker("w1", { state: "Busy", queues: ["gpu"], tokens: [first.token] });
    await env.advance("1s");
    await refused(env.tasks.heartbeatTask(first.token));
    await env.advance("1s");
    assert.equal((await only(env)).lastHeartbeat, 4);
    assert.deepEqual(await quiet.result(), ["heartbeat", 3_000, 2]);
  });
});

test("a cancelled, raced or terminated activity is taken from its worker, which hears so with its next sign of life", async () => {
  const raced = workflow("raced", async function* () {
    return (yield* race({ work: render(1), late: sleep("5s") })).winner;
  });
  await inEachCache({ workflows: [raced, rendering], queues: "workers" }, async (env) => {
    const run = await env.start(raced);
    const { token } = await only(env);
    assert.equal(await run.result(), "late");
    await refused(env.tasks.heartbeatTask(token));
    for (const end of ["cancel", "terminate"] as const) {
      const ended = await env.start(rendering, 1);
      const held = await only(env);
      const waiting = await env.start(rendering, 2);
      await ended[end]();
      await waiting[end]();
      await assert.rejects(ended.result());
      await assert.rejects(waiting.result());
      assert.deepEqual(await env.tasks.heartbeatWorker("w", { state: "Busy", queues: ["gpu"], tokens: [held.token] }), {
        lost: [held.token],
      });
      await refused(env.tasks.completeTask(held.token, 1));
      assert.deepEqual(await poll(env), []);
    }
    assert.deepEqual(await env.tasks.listQueues(), []);
  });
});

test("a task that is handed back goes to another worker at once, and nothing is counted", async () => {
  await inCase({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    const waiting = async (worker: string) => (await poll(env, 1, { worker, wait: 10_000 }))[0] as ActivityTask;
    const first = await waiting("w1");
    const other = waiting("w2");
    await env.tasks.releaseTask(first.token);
    const second = await other;
    assert.equal(second.attempt, 1);
    await refused(env.tasks.completeTask(first.token, 1));
    await env.tasks.completeTask(second.token, 2);
    assert.equal(await run.result(), 2);
    assert.equal((await env.history(run.id)).length, 3 + 1);
  });
});

test("a crash of the orchestrator loses neither tasks nor what their workers say meanwhile", async () => {
  await inEachCache({ workflows: [rendering], queues: "workers" }, async (env) => {
    const held = await env.start(rendering, 1);
    const { token } = await only(env);
    const waiting = await env.start(rendering, 2);
    await env.restart();
    assert.deepEqual((await env.tasks.heartbeatTask(token)).lease, 30_000);
    await env.tasks.completeTask(token, 10);
    await env.tasks.completeTask((await only(env)).token, 20);
    assert.deepEqual([await held.result(), await waiting.result()], [10, 20]);
    const facts = [...(await env.history(held.id)), ...(await env.history(waiting.id))];
    assert.equal(facts.filter(({ type }) => type === "AttemptLost").length, 0);
  });
});

test("runs that wait for workers are not read when the orchestrator starts, and need no memory", async () => {
  await inCase({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    const row = await env.bareStore.getInstance({ tenant: "default", run: run.runId });
    assert.equal(row?.busy, false);
    await env.tasks.completeTask((await only(env)).token, 1);
    assert.equal(await run.result(), 1);
  });
});

test("a paused run records what its worker says, and hears it when it goes on; a lease that ends meanwhile is seen to then", async () => {
  await inEachCache({ workflows: [rendering], queues: "workers" }, async (env) => {
    const run = await env.start(rendering, 1);
    const other = await env.start(rendering, 2);
    const [one, two] = await poll(env, 2, { lease: 5_000 });
    await run.pause();
    await other.pause();
    await env.tasks.completeTask(one?.token ?? "", 7);
    await env.advance("1m");
    assert.equal((await run.describe()).status, "Paused");
    assert.deepEqual(await poll(env), []);
    await run.resume();
    await other.resume();
    assert.equal(await run.result(), 7);
    await env.advance("10s");
    await refused(env.tasks.completeTask(two?.token ?? "", 8));
    await env.tasks.completeTask((await only(env)).token, 9);
    assert.equal(await other.result(), 9);
  });
});

test("what undoes may be on a queue as well", async () => {
  const refund = activity.contract("refund", { queue: "gpu", input: Type.Number() });
  const order = workflow("order", async function* (n: number) {
    yield* render(n).compensate((paid) => refund(paid));
    throw new Error("no stock");
  });
  await inCase({ workflows: [order], queues: "workers" }, async (env) => {
    const run = await env.start(order, 3);
    await env.tasks.completeTask((await only(env)).token, 30);
    await env.settle();
    const undo = await only(env);
    assert.deepEqual([undo.activity, undo.input], ["refund", 30]);
    await env.tasks.completeTask(undo.token);
    await assert.rejects(run.result());
    assert.equal((await run.describe()).status, "Compensated");
  });
});

test("without workers of its own, an environment runs activities of queues as if a worker were there", async () => {
  const double = render.implement(async (n) => n * 2);
  const flow = workflow("flow", async function* (n: number) {
    return yield* double(n);
  });
  await inCase({ workflows: [flow] }, async (env) => {
    assert.equal(await env.execute(flow, 4), 8);
  });
});

test("payloads of tasks pass the codec, and what cannot be decoded fails the attempt", async () => {
  let broken = false;
  const codec = {
    name: "turned",
    encode: async (payload: string) => [...payload].reverse().join(""),
    decode: async (payload: string) => {
      if (broken && payload.includes("7")) throw new Error("no key");
      return [...payload].reverse().join("");
    },
  };
  const flow = workflow("flow", async function* (n: number) {
    return yield* render(n).with({ retry: once });
  });
  await inCase({ workflows: [flow], queues: "workers", codec }, async (env) => {
    const run = await env.start(flow, 4);
    const first = await only(env, { lease: 5_000 });
    await env.tasks.heartbeatTask(first.token, { details: { at: 1 }, lease: 5_000 });
    await env.advance("5s");
    const second = await only(env);
    assert.deepEqual([second.input, second.lastHeartbeat], [4, { at: 1 }]);
    await env.tasks.completeTask(second.token, 9);
    assert.equal(await run.result(), 9);
    const lost = await env.start(flow, 7);
    broken = true;
    assert.deepEqual(await poll(env), []);
    broken = false;
    await assert.rejects(lost.result(), (error: Error) => ((error.cause as Error).cause as WovyrError).code === "PAYLOAD_CODEC_FAILED");
  });
});

test("what a poll asks for is checked", async () => {
  await inCase({ workflows: [rendering], queues: "workers" }, async (env) => {
    const code = (call: Promise<unknown>) =>
      call.then(
        () => "",
        (error: WovyrError) => error.code,
      );
    const ask = (more: object) => code(env.tasks.pollTasks({ queues: ["gpu"], worker: "w", ...more }));
    assert.equal(await ask({ queues: [] }), "INVALID_OPTION");
    assert.equal(await ask({ queues: ["no space"] }), "INVALID_NAME");
    assert.equal(await ask({ worker: "" }), "INVALID_NAME");
    assert.equal(await ask({ max: 0 }), "INVALID_OPTION");
    assert.equal(await ask({ max: 1_001 }), "INVALID_OPTION");
    assert.equal(await ask({ lease: 10 }), "INVALID_OPTION");
    assert.equal(await ask({ labels: ["no space"] }), "INVALID_OPTION");
    assert.equal(await code(env.tasks.completeTask("unknown", 1)), "TASK_NOT_HELD");
  });
});
