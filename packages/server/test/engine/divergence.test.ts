import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyWorkflow, activity, awaitEvent, child, event, type Flow, sleep, Type, workflow } from "@wovyr/sdk";
import { inCase } from "./case.ts";

const go = event("go", Type.Number());
const stop = event("stop");
const a = activity("a", async (n: number) => n);
const b = activity("b", async (n: number) => n);
const sub = workflow("sub", async function* () {
  return "sub";
});
const program = (run: () => Flow<unknown>) =>
  workflow("program", async function* () {
    return yield* run();
  });

const original = program(async function* () {
  yield* a(1);
  yield* sleep("1s");
  yield* child(sub);
  return yield* awaitEvent(go);
});

const changed: Record<string, [workflow: AnyWorkflow, seq: number, expected: RegExp, got: RegExp]> = {
  "another activity": [
    program(async function* () {
      yield* b(1);
    }),
    2,
    /^activity "a" as effect 0$/,
    /^activity "b" as effect 0$/,
  ],
  "another input": [
    program(async function* () {
      yield* a(2);
    }),
    2,
    /^activity "a" as effect 0$/,
    /^activity "a" as effect 0 with another input$/,
  ],
  "another kind of effect": [
    program(async function* () {
      yield* sleep("1s");
    }),
    2,
    /^activity "a"/,
    /^timer \(sleep\) as effect 0$/,
  ],
  "a missing effect": [
    program(async function* () {
      yield* a(1);
      yield* child(sub);
    }),
    4,
    /^timer \(sleep\) as effect 1$/,
    /^child "sub" as effect 1$/,
  ],
  "an added effect": [
    program(async function* () {
      yield* a(1);
      yield* a(5);
      yield* sleep("1s");
    }),
    4,
    /^timer/,
    /^activity "a" as effect 1$/,
  ],
  "another event": [
    program(async function* () {
      yield* a(1);
      yield* sleep("1s");
      yield* child(sub);
      yield* awaitEvent(stop);
    }),
    8,
    /^wait for event "go" as effect 3$/,
    /^wait for event "stop" as effect 3$/,
  ],
  "an early end": [
    program(async function* () {
      yield* a(1);
    }),
    4,
    /^timer/,
    /^the end of the workflow \(completed\)$/,
  ],
  "an early failure": [
    program(async function* () {
      yield* a(1);
      throw new Error("new");
    }),
    4,
    /^timer/,
    /^the end of the workflow \(failed\)$/,
  ],
  "no effect where there was one": [
    program(async function* () {
      await Promise.resolve();
      yield* a(1);
      yield* sleep("1s");
      yield* child(sub);
      return 5;
    }),
    8,
    /^wait for event/,
    /^the end of the workflow/,
  ],
};

for (const [what, [workflowNow, seq, expected, got]] of Object.entries(changed))
  test(`code with ${what} parks the run with a report, and the run goes on when the code is mended`, async () => {
    await inCase({ workflows: [original, sub] }, async (env) => {
      const run = await env.start(original);
      await env.advance("1s");
      const before = (await env.turns(run.id)).length;
      env.autoSkip = false;
      await env.restart({ workflows: [workflowNow, sub] });
      await run.send(go, 5);
      await env.settle();
      const { parked } = await env.state(run.id);
      const report = env.logs.find((line) => line.message.startsWith("the run is parked"))?.message ?? parked?.message ?? "";
      assert.equal(parked?.code, "HISTORY_DIVERGED");
      assert.match(parked.message, new RegExp(`no longer matches its history at event ${seq}:`));
      assert.match(
        parked.message,
        got.source.includes("the end of") ? /after the yield at \/.*divergence\.test\.ts:\d+:\d+\./ : /divergence\.test\.ts:\d+:\d+\./,
      );
      const [, recorded = "", line] = /history recorded (.*?)( at divergence\.test\.ts:\d+)?; the code/.exec(parked.message) ?? [];
      assert.match(recorded, expected, report);
      assert.ok(line !== undefined, parked.message);
      assert.match(/now asks for (.*?)( (?:after the yield )?at \/.*)?\. Deploy/.exec(parked.message)?.[1] ?? "", got);
      assert.equal((await env.turns(run.id)).length, before + 1);
      await env.restart({ workflows: [original, sub] });
      await env.settle();
      assert.equal((await env.state(run.id)).parked, undefined);
      assert.equal(await run.result(), 5);
    });
  });

test("a run that diverges is not corrupted by cancel or terminate, and other runs go on", async () => {
  await inCase({ workflows: [original, sub], end: { skipReplay: (row) => row.workflow === "program" } }, async (env) => {
    const run = await env.start(original);
    await env.advance("1s");
    env.autoSkip = false;
    const [broken] = changed["another activity"] ?? [original];
    await env.restart({ workflows: [broken, sub] });
    await run.cancel();
    await env.settle();
    assert.equal((await env.state(run.id)).status, "Parked");
    assert.equal(await env.execute(sub), "sub");
    await run.terminate({ reason: "give up" });
    await env.settle();
    assert.equal((await env.state(run.id)).status, "Terminated");
  });
});
