import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import {
  activity,
  all,
  awaitEvent,
  type DeterminismError,
  event,
  type Flow,
  sleep,
  spawn,
  type Task,
  Type,
  type WorkflowError,
  type WovyrError,
  workflow,
} from "@wovyr/sdk";
import type { Handle } from "@wovyr/sdk/client";
import { createTestEnvironment, Gate } from "@wovyr/testing";
import { inCase, inEachCache } from "./case.ts";

const go = event("go");
const fine = workflow("fine", async function* (n: number) {
  yield* sleep("1s");
  return n;
});

/** A workflow whose types are wrong on purpose. */
const wrong = (name: string, run: (input: never, ctx: never) => unknown) => workflow(name, run as () => Flow<unknown>);

test("H033 the failure of a task that nobody joined is logged and ignored; one that is joined later throws there", async () => {
  const gate = new Gate<string, void>();
  const fails = activity("fails", { retry: { maxAttempts: 1 } }, gate.body);
  const forgetful = workflow("forgetful", async function* () {
    yield* spawn(fails("a"));
    yield* sleep("1s");
    return "fine";
  });
  const late = workflow("late", async function* () {
    const task = yield* spawn(fails("b"));
    yield* sleep("1s");
    try {
      yield* task;
    } catch (error) {
      return (error as Error).message;
    }
    return "no error";
  });
  const odd = workflow("odd", async function* () {
    yield* spawn(async function* () {
      yield* sleep(1);
      throw 7;
    });
    yield* sleep("1s");
    return "fine";
  });
  await inEachCache({ workflows: [forgetful, late, odd, fine] }, async (env) => {
    const healthy = await Promise.all(Array.from({ length: 50 }, (_, n) => env.start(fine, n)));
    const runs = [await env.start(forgetful), await env.start(late), await env.start(odd)] as const;
    await gate.arrived("b");
    gate.fail("a", new Error("nobody looks"));
    gate.fail("b", new Error("looked at"));
    await env.settle();
    assert.equal(await runs[0].result(), "fine");
    assert.equal(await runs[1].result(), 'activity "fails" failed after 1 attempt: looked at');
    assert.equal(await runs[2].result(), "fine");
    assert.deepEqual(await Promise.all(healthy.map((run) => run.result())), [...Array(50).keys()]);
    const warnings = env.logs
      .filter((line) => line.message.includes("nothing joined it"))
      .map((line) => line.data as { workflow: string; task: string; at: string; error: Error });
    assert.deepEqual(warnings.map(({ workflow: name, task, error }) => `${name} ${task} ${error}`).sort(), [
      'forgetful 0 ActivityError: activity "fails" failed after 1 attempt: nobody looks',
      "odd 0 7",
    ]);
    for (const { at } of warnings) assert.match(at, /author-errors\.test\.ts:\d+:\d+$/);
  });
});

test("H034 a run whose workflow is not registered waits for an engine that has it, and others go on", async () => {
  const other = workflow("other", async function* () {
    yield* sleep("1h");
    return "other";
  });
  await inCase({ workflows: [fine, other] }, async (env) => {
    env.autoSkip = false;
    const waiting = await env.start(other);
    await env.restart({ workflows: [fine] });
    await assert.rejects(env.start(other), { code: "WORKFLOW_NOT_FOUND" });
    await env.advance("2h");
    const good = await env.start(fine, 5);
    await env.advance("1s");
    assert.equal(await good.result(), 5);
    assert.ok(env.logs.some((line) => line.message.includes('workflow "other" version "1" is not registered here')));
    const about = await waiting.describe();
    assert.deepEqual([about.status, about.unregistered], ["Waiting", true]);
    assert.equal((await good.describe()).unregistered, undefined);
    await env.restart({ workflows: [fine, other] });
    await env.settle();
    assert.equal((await waiting.describe()).unregistered, undefined);
    assert.equal(await waiting.result(), "other");
  });
});

let foreignTask: Task<unknown> | undefined;
const misuse: Record<string, [run: () => unknown, expected: RegExp | { value: unknown }]> = {
  "yields a number": [
    async function* () {
      yield 5;
    },
    /may yield only effects, but this one yielded number 5\. The workflow is defined at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "yields a number after an effect": [
    async function* () {
      yield* sleep(1);
      yield 5;
    },
    /yielded number 5\. The last effect before it was yielded at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "yields undefined": [
    async function* () {
      yield undefined;
    },
    /yielded undefined/,
  ],
  // An async generator awaits what it yields: the promise's value arrives.
  "yields a promise of a number": [
    async function* () {
      yield Promise.resolve(5);
    },
    /yielded number 5/,
  ],
  "yields a generator": [
    async function* () {
      yield (async function* () {})();
    },
    /did you mean `yield\*`/,
  ],
  "catches its own mistake": [
    async function* () {
      try {
        yield 5;
      } catch (error) {
        return (error as { code: string }).code;
      }
    },
    { value: "FOREIGN_YIELD" },
  ],
  "joins another run's task": [
    async function* () {
      yield foreignTask;
    },
    /belongs to another instance\..* The workflow is defined at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "joins another run's task later": [
    async function* () {
      yield* sleep(1);
      yield foreignTask;
    },
    /belongs to another instance\..* The last effect before it was yielded at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "cancels another run's task": [
    async function* () {
      yield foreignTask?.cancel();
    },
    /belongs to another instance\..* yielded at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "delegates to another generator": [
    async function* () {
      return yield* (async function* (): Flow<number> {
        yield* sleep(1);
        return 3;
      })();
    },
    { value: 3 },
  ],
  "throws undefined": [
    async function* () {
      throw undefined;
    },
    /undefined/,
  ],
  "throws null": [
    async function* () {
      throw null;
    },
    /null/,
  ],
  "throws a text": [
    async function* () {
      throw "text";
    },
    /text/,
  ],
  "throws a symbol": [
    async function* () {
      throw Symbol("sign");
    },
    /sign/,
  ],
  "returns undefined": [async function* () {}, { value: undefined }],
  "returns a function": [
    async function* () {
      return () => 1;
    },
    /cannot be stored|function/,
  ],
  "returns a task that it did not join": [
    async function* () {
      return yield* spawn(sleep(1));
    },
    /of class Task|effect/,
  ],
  "is a plain function that returns a number": [
    () => 5,
    /did not return an async generator.* The workflow is defined at \/.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "returns a generator that is not async": [
    () =>
      (function* () {
        yield sleep(1);
      })(),
    /did not return an async generator/,
  ],
  "has a branch that is a generator, and not async": [
    async function* () {
      yield* all([
        function* () {
          yield sleep(1);
        } as never,
      ]);
    },
    /neither an effect nor an async generator.*author-errors\.test\.ts:\d+:\d+\./,
  ],
  "throws before it is a generator": [
    () => {
      throw new Error("at once");
    },
    /at once/,
  ],
};

test("H035 every misuse of a generator has one documented result, and the engine stays well", async () => {
  const workflows = Object.entries(misuse).map(([name, [run]]) => wrong(name.replaceAll(/[^a-z]+/gi, "-"), run));
  const spawner = workflow("spawner", async function* () {
    foreignTask = yield* spawn(sleep("1 day"));
    yield* awaitEvent(go);
  });
  await inEachCache({ workflows: [...workflows, spawner, fine] }, async (env) => {
    const owner = await env.start(spawner);
    for (const [index, [name, [, expected]]] of Object.entries(misuse).entries()) {
      const run = await env.start(workflows[index] as (typeof workflows)[number], undefined);
      if (expected instanceof RegExp) await assert.rejects(run.result(), expected, name);
      else assert.deepEqual(await run.result(), expected.value, name);
    }
    await owner.send(go);
    assert.equal(await env.execute(fine, 1), 1);
  });
});

test("H035 an effect that is returned and not yielded fails the run with advice", async () => {
  const returning = wrong("returning", async function* () {
    return sleep(1);
  });
  await inCase({ workflows: [returning] }, async (env) => {
    await assert.rejects(env.execute(returning), (error: WorkflowError) => {
      assert.equal(error.status, "Failed");
      assert.match(String(error.cause), /effect/i);
      return true;
    });
  });
});

test("H035 a generator function without async is refused where it is defined", () => {
  assert.throws(
    () =>
      wrong("sync", function* () {
        yield sleep(1);
      }),
    { code: "INVALID_DEFINITION", message: /without `async`; write `async function\* / },
  );
});

test("H036 what the workflow does to its values does not touch the engine", async () => {
  const read = activity("read", async () => ({ list: [1, 2] }));
  const echo = activity("echo", async (value: { list: number[] }) => {
    value.list.push(7);
    return value;
  });
  const told = event("told", Type.Object({ list: Type.Array(Type.Number()) }));
  const meddler = workflow("meddler", async function* (input: { items: number[] }, ctx) {
    const began = ctx.now();
    began.setFullYear(1970);
    const clean = ctx.now().getTime();
    input.items.push(99);
    const given = { list: [1] };
    const task = yield* spawn(echo(given));
    given.list.push(2);
    const first = yield* task;
    first.list.push(3);
    (ctx.memo as { list: number[] }).list.push(4);
    yield* sleep("1s");
    const drawn = [ctx.random(), ctx.uuid()];
    const heard = yield* awaitEvent(told, {
      match: (payload) => {
        if (payload.list[0] === 2) return true;
        payload.list.push(5);
        return false;
      },
    });
    const other = yield* awaitEvent(told);
    yield* awaitEvent(go);
    return { clean, items: input.items, first: first.list, given: given.list, again: (yield* read()).list, heard, other, drawn };
  });
  const results: unknown[] = [];
  await inEachCache({ workflows: [meddler] }, async (env) => {
    const given = { items: [1] };
    const memo = { list: [1] };
    const run = await env.start(meddler, given, { memo });
    given.items.push(5);
    memo.list.push(5);
    const began = env.now().getTime();
    await env.advance("1s");
    await run.send(told, { list: [1] });
    await run.send(told, { list: [2] });
    await env.evict(run);
    await run.send(go);
    const { drawn, ...result } = await run.result();
    assert.deepEqual(result, {
      clean: began,
      items: [1, 99],
      first: [1, 7, 3],
      given: [1, 2],
      again: [1, 2],
      heard: { list: [2] },
      other: { list: [1] },
    });
    assert.deepEqual((await run.describe()).memo, { list: [1] });
    results.push(drawn);
  });
  assert.deepEqual(results[0], results[1]);
});

test("H036 a task that is joined twice gives the same value twice, as a promise does, live and replayed; history keeps what it was", async () => {
  const read = activity("read", async () => ({ list: [1, 2] }));
  const twice = workflow("twice", async function* () {
    const task = yield* spawn(read());
    (yield* task).list.push(3);
    yield* awaitEvent(go);
    return (yield* task).list;
  });
  await inEachCache({ workflows: [twice] }, async (env) => {
    const run = await env.start(twice);
    await env.settle();
    await env.evict(run);
    await run.send(go);
    assert.deepEqual(await run.result(), [1, 2, 3]);
    const completed = (await env.history(run.id)).find(({ type }) => type === "ActivityCompleted");
    assert.deepEqual(completed?.data.output, { list: [1, 2] });
  });
});

const foreign: Record<string, () => Promise<unknown>> = {
  "a file": () => readFile(import.meta.filename),
  "a fetch": () => fetch("http://127.0.0.1:49151/").catch(() => {}),
  "a timer": () => new Promise((resolve) => setTimeout(resolve, 1)),
  "a macrotask": () => new Promise((resolve) => setImmediate(resolve)),
  "what never comes": () => new Promise(() => {}),
};

for (const [what, wait] of Object.entries(foreign)) {
  test(`H043 a workflow that awaits ${what} is parked on its first run, and nothing else is held up`, async () => {
    const waits = workflow("waits", async function* () {
      await wait();
      yield* sleep("1s");
    });
    await using env = await createTestEnvironment({ workflows: [waits, fine], determinismGuard: "off" });
    const run = await env.start(waits);
    await env.settle();
    const { parked, status } = await env.state(run.id);
    assert.equal(status, "Parked");
    assert.match(parked?.message ?? "", /awaited something that is no effect/);
    assert.match(parked?.message ?? "", /The workflow is defined at \/.*author-errors\.test\.ts:\d+:\d+\./);
    assert.equal(parked?.code, "FOREIGN_AWAIT");
    assert.equal(await env.execute(fine, 2), 2);
    await run.terminate({ reason: "broken" });
    await assert.rejects(run.result(), /broken/);
  });

  test(`H043 a workflow that awaits ${what} after a replay is parked there, and goes on with mended code`, async () => {
    let broken = false;
    const waits = workflow("waits", async function* () {
      yield* sleep("1s");
      yield* awaitEvent(go);
      if (broken) await wait();
      return "mended";
    });
    await inCase({ workflows: [waits, fine], determinismGuard: "off" }, async (env) => {
      const run = await env.start(waits);
      await env.advance("1s");
      await env.evict(run);
      broken = true;
      await run.send(go);
      await env.settle();
      const { parked } = await env.state(run.id);
      assert.match((parked as unknown as DeterminismError).message, /awaited something that is no effect.*author-errors\.test\.ts/);
      broken = false;
      await env.restart();
      assert.equal(await run.result(), "mended");
    });
  });
}

for (const [what, wait] of Object.entries(foreign))
  test(`H043 clean-up that awaits ${what} when the run is cancelled parks it; it can be ended, and nothing hangs`, async () => {
    const beyond: string[] = [];
    const waits = workflow("waits", async function* () {
      try {
        yield* sleep("1 day");
      } finally {
        await wait();
        beyond.push("beyond");
        yield* sleep(1);
        beyond.push("after another effect");
      }
    });
    await inCase(
      { workflows: [waits, fine], determinismGuard: "off", end: { skipReplay: ({ workflow: name }) => name === "waits" } },
      async (env) => {
        const runs = await Promise.all(["cancel", "terminate", "immediate", "stop"].map((id) => env.start(waits, undefined, { id })));
        await Promise.all(runs.map((run) => run.cancel().catch((error: WovyrError) => assert.equal(error.code, "INSTANCE_PARKED"))));
        await env.settle();
        for (const run of runs) assert.equal((await env.state(run.id)).parked?.code, "FOREIGN_AWAIT");
        assert.equal(await env.execute(fine, 2), 2);
        const [cancelled, terminated, immediate, stopped] = runs as [Handle<void>, Handle<void>, Handle<void>, Handle<void>];
        await cancelled.cancel();
        await terminated.terminate();
        await immediate.cancel({ mode: "immediate" });
        await env.evict();
        await env.settle();
        await assert.rejects(terminated.result(), /Terminated/);
        await assert.rejects(immediate.result(), /Cancelled/);
        await env.stop();
        await env.restart();
        assert.equal(await env.execute(fine, 3), 3);
        for (const run of [cancelled, stopped]) {
          assert.equal((await run.describe()).status, "Parked");
          await run.terminate();
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
        assert.ok(!beyond.includes("after another effect"));
      },
    );
  });

test("many nested delegations and settled promises are no foreign await", async () => {
  const nest = async function* (depth: number): Flow<number> {
    await Promise.resolve();
    if (depth > 0) return yield* nest(depth - 1);
    yield* sleep(1);
    return 1;
  };
  const deep = workflow("deep", async function* () {
    let sum = 0;
    for (const part of [1, 2, 3]) sum += part * (await Promise.resolve(yield* nest(200)));
    return sum;
  });
  await inEachCache({ workflows: [deep] }, async (env) => assert.equal(await env.execute(deep), 6));
});

test("an event payload that does not fit the open wait is refused, and the wait goes on", async () => {
  const strict = event("strict", Type.Number());
  const waiter = workflow("waiter", async function* () {
    return yield* awaitEvent(strict);
  });
  await inEachCache({ workflows: [waiter] }, async (env) => {
    const run = await env.start(waiter);
    await assert.rejects(run.send(strict, "text" as never), { code: "INVALID_INPUT" });
    await run.send(strict, 4);
    assert.equal(await run.result(), 4);
  });
});

test("a schema that can check nothing is told before what it is to check is done: the activity does not run, the run does not begin", async () => {
  const iban = Type.Object({ iban: Type.String({ format: "iban of nobody" }) });
  let paid = 0;
  const pay = activity("pay", { output: iban, retry: { maxAttempts: 3 } }, async () => {
    paid += 1;
    return { iban: "DE00" };
  });
  const paying = workflow("paying", async function* () {
    try {
      yield* pay();
    } catch (error) {
      const cause = (error as Error).cause as WovyrError;
      return `${cause.code} ${cause.message}`;
    }
    return "paid";
  });
  const reporting = workflow("reporting", { output: iban }, async function* () {
    yield* pay();
    return { iban: "DE00" };
  });
  await inCase({ workflows: [paying, reporting] }, async ({ client }) => {
    assert.match(
      await client.execute(paying),
      /^INVALID_DEFINITION the schema of output of activity "pay" uses the format "iban of nobody"/,
    );
    await assert.rejects(client.start(reporting), {
      code: "INVALID_DEFINITION",
      message: /output of workflow "reporting" uses the format/,
    });
  });
  assert.equal(paid, 0);
});

test("a start says what it takes when it is given something else", async () => {
  await inCase({ workflows: [fine] }, async ({ client }) => {
    for (const other of [undefined, null, "fine", go])
      await assert.rejects(client.start(other as never), { code: "INVALID_DEFINITION", message: /takes what `workflow\(…\)` returned/ });
    await assert.rejects(client.start(fine, 1, { id: 5 } as never), { code: "INVALID_NAME" });
  });
});
