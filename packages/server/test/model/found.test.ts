/** What the model has found in the engine, each in its smallest form. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, compensateNow, race, sleep, spawn, type Task, type WorkflowError, workflow } from "@wovyr/sdk";
import { createTestEnvironment } from "@wovyr/testing";
import { play } from "./case.ts";
import type { Interruption } from "./interruptions.ts";
import type { Program } from "./program.ts";

test("a task that cancels itself gets its CancelledError, and may clean up", async () => {
  const log: string[] = [];
  const suicidal = workflow("suicidal", async function* () {
    const task: Task<unknown> = yield* spawn(async function* () {
      yield* sleep(1);
      try {
        yield* task.cancel();
      } finally {
        log.push("cleaned up");
      }
    });
    yield* task;
  });
  await using env = await createTestEnvironment({ workflows: [suicidal] });
  const before = env.now().getTime();
  await assert.rejects(env.execute(suicidal));
  assert.deepEqual(log, ["cleaned up"]);
  assert.equal(env.now().getTime() - before, 1);
});

test("a branch that loses its race by what it does itself gets its CancelledError, and does not go on", async () => {
  let wentOn = false;
  const loser = workflow("loser", async function* () {
    const task = yield* spawn(sleep("1h"));
    const canceller = async function* () {
      yield* task.cancel();
      wentOn = true;
    };
    yield* race([canceller, task]);
  });
  await using env = await createTestEnvironment({ workflows: [loser] });
  await assert.rejects(env.execute(loser), /the task was cancelled/);
  assert.equal(wentOn, false);
});

test("tasks that wait for each other in a circle while they clean up are dropped when the time for it is over", async () => {
  const circle = workflow("circle", async function* () {
    const tasks: Task<unknown>[] = [];
    const waiting = (other: number) =>
      async function* () {
        try {
          yield* sleep("1h");
        } finally {
          yield* tasks[other] as Task<unknown>;
        }
      };
    for (const other of [1, 0]) tasks.push(yield* spawn(waiting(other)));
    yield* sleep(1);
    return "over";
  });
  await using env = await createTestEnvironment({ workflows: [circle] });
  const before = env.now().getTime();
  assert.equal(await env.execute(circle), "over");
  assert.equal(env.now().getTime() - before, 60_001);
});

test("what undoes and waits for what waits for it is not dropped, and is ended from outside", async () => {
  const book = activity("book", async () => {});
  const circle = workflow("circle", async function* () {
    yield* book().compensate(() => task.cancel());
    const task: Task<unknown> = yield* spawn(async function* () {
      try {
        yield* sleep("1h");
      } finally {
        yield* compensateNow();
      }
    });
    yield* sleep(1);
  });
  await using env = await createTestEnvironment({ workflows: [circle] });
  const run = await env.start(circle);
  await env.advance("1 day");
  assert.deepEqual(
    (await run.describe()).compensations.map(({ effect, state }) => [effect, state]),
    [["~0", "running"]],
  );
  await run.terminate();
  await assert.rejects(run.result(), (error: WorkflowError) => error.status === "Terminated");
});

test("a task that is dropped with its generator, whose clean-up took too long, ends for those who join it", async () => {
  const lingering = async function* () {
    try {
      yield* sleep("1h");
    } finally {
      yield* sleep("1h");
    }
  };
  const orphans = workflow("orphans", async function* () {
    let task: Task<unknown> | undefined;
    const holder = yield* spawn(async function* () {
      task = yield* spawn(lingering);
      yield* lingering();
    });
    yield* sleep(1);
    const joined = async function* () {
      yield* task as Task<unknown>;
    };
    yield* all([holder.cancel(), joined]);
  });
  await using env = await createTestEnvironment({ workflows: [orphans] });
  await assert.rejects(env.execute(orphans), /cancelled|no longer needed/);
});

test("a suspect that is cancelled in the turn that begins its attempt makes way for the next", async () => {
  const activity: Program = { kind: "activity", attempts: 3 };
  const branch: Program = { kind: "sequence", parts: [activity] };
  const twoSleeps: Program = {
    kind: "sequence",
    parts: [
      { kind: "sleep", ms: 61_000 },
      { kind: "sleep", ms: 10 },
    ],
  };
  const race: Program = { kind: "any", bare: false, parts: [activity, twoSleeps] };
  const child: Program = { kind: "child", policy: "terminate", part: branch };
  const program: Program = { kind: "all", bare: false, parts: [child, race] };
  const choices = [
    { pick: 70, how: 0, together: false },
    { pick: 0, how: 8, together: true },
  ];
  const each: Interruption[] = [
    { kind: "crashed during", after: 0 },
    { kind: "crashed before", after: 0 },
  ];
  await play({ program, choices, seed: 102 }, { evictAlways: false, each, losses: 5 });
});
