import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  activity,
  all,
  awaitEvent,
  child,
  condition,
  event,
  type Flow,
  map,
  publish,
  race,
  type Schema,
  send,
  sleep,
  spawn,
  step,
  Type,
  timeout,
  update,
  type WorkflowError,
  workflow,
} from "@wovyr/sdk";
import { rememberSites } from "@wovyr/sdk/internal";
import { createTestEnvironment } from "@wovyr/testing";
import { z } from "zod";
import { inEachCache } from "./case.ts";

const charge = activity("charge", async (n: number) => n);
const go = event("go");
const stop = event("stop");
const atModule = charge(7);

type Ctx = { variables: Record<string, unknown> };
/** A workflow whose types are wrong on purpose. */
const wrong = (name: string, run: (input: never, ctx: never) => unknown) =>
  workflow(name.replaceAll(/[^a-z]+/gi, "-"), run as () => Flow<unknown>);

const line = String.raw`/.*/forgotten-yield\.test\.ts:\d+:\d+`;

/** What fails the run at once, wherever it is and however often it is replayed. */
const failing: Record<string, [run: (input: never, ctx: never) => unknown, message: string]> = {
  awaits: [
    async function* () {
      await charge(1);
      yield* sleep(1);
    },
    `activity "charge" at ${line} was awaited (or returned by an async function) and never yielded, so nothing of it has run. Write \`yield* charge(…)\` instead of \`await\`.`,
  ],
  "awaits in a branch": [
    async function* () {
      yield* all([
        async function* () {
          yield* sleep(1);
          await charge(1);
        },
      ]);
    },
    `activity "charge" at ${line} was awaited (or returned by an async function) and never yielded, so nothing of it has run. Write \`yield* charge(…)\` instead of \`await\`.`,
  ],
  compares: [
    async function* () {
      yield* sleep(1);
      return (charge(1) as never) > 5;
    },
    `activity "charge", made at ${line}, was used as a value, but nothing of it has run. Write \`yield* charge(…)\` to get its result.`,
  ],
  "writes into a text": [
    async function* () {
      return `${awaitEvent(go)}`;
    },
    `a wait for event "go", made at ${line}, was used as a value, but nothing of it has run. Write \`yield* awaitEvent(…)\` to get its result.`,
  ],
  returns: [
    async function* () {
      yield* sleep(1);
      return { charges: [charge(1)] };
    },
    `output of workflow "returns" cannot be stored: $.charges[0] is an effect that was not run: activity "charge", made at ${line}; write \`yield* charge(…)\` and pass its result`,
  ],
  "passes to an activity": [
    async function* () {
      yield* sleep(1);
      yield* charge({ amount: charge(1) } as never);
    },
    `input of activity "charge" cannot be stored: $.amount is an effect that was not run: activity "charge", made at ${line}; write \`yield* charge(…)\` and pass its result`,
  ],
  keeps: [
    async function* (_: never, ctx: Ctx) {
      yield* sleep(1);
      ctx.variables.wait = sleep(1);
      yield* sleep(1);
    } as never,
    `ctx.variables cannot be stored: $.wait is an effect that was not run: sleep(…), made at ${line}; write \`yield* sleep(…)\` and pass its result`,
  ],
  throws: [
    async function* () {
      yield* sleep(1);
      throw charge(1);
    },
    `An effect was thrown: activity "charge", made at ${line}. Nothing of it has run. Throw an error; write \`yield* charge(…)\` to run it.`,
  ],
};

const pattern = (message: string) =>
  new RegExp(
    `: ${message
      .split(line)
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join(line)}$`,
  );

test("an effect that is awaited, calculated with, or part of a value fails the run with its line", async () => {
  const workflows = Object.entries(failing).map(([name, [run]]) => wrong(name, run));
  await inEachCache({ workflows }, async (env) => {
    for (const [index, [name, [, message]]] of Object.entries(failing).entries())
      await assert.rejects(env.execute(workflows[index] as (typeof workflows)[number]), (error: WorkflowError) => {
        assert.equal(error.status, "Failed", name);
        assert.equal((error.cause as { code?: string }).code, "EFFECT_NOT_YIELDED", name);
        assert.match(error.message, pattern(message), name);
        return true;
      });
  });
});

test("the mistake can be caught where it happens, and the run goes on", async () => {
  const careful = wrong("careful", async function* () {
    const codes: unknown[] = [];
    try {
      yield* charge({ amount: charge(1) } as never);
    } catch (error) {
      codes.push((error as { code: string }).code);
    }
    return codes;
  });
  await inEachCache({ workflows: [careful], determinismGuard: "warn" }, async (env) =>
    assert.deepEqual(await env.execute(careful), ["EFFECT_NOT_YIELDED"]),
  );
});

describe("in production, where lines are not remembered", () => {
  before(() => rememberSites(false));
  after(() => rememberSites(true));

  test("the run fails alike, and the message names the effect", async () => {
    const workflows = Object.entries(failing).map(([name, [run]]) => wrong(name, run));
    await inEachCache({ workflows, determinismGuard: "off" }, async (env) => {
      for (const [index, [name, [, message]]] of Object.entries(failing).entries())
        await assert.rejects(env.execute(workflows[index] as (typeof workflows)[number]), (error: WorkflowError) => {
          assert.equal((error.cause as { code?: string }).code, "EFFECT_NOT_YIELDED", name);
          assert.match(
            error.message,
            new RegExp(message.includes("charge") ? "charge" : message.includes('"go"') ? '"go"' : "sleep"),
            name,
          );
          assert.doesNotMatch(error.message, /\.ts:/, name);
          return true;
        });
    });
  });

  test("one that is never used is told by its name", async () => {
    const bare = wrong("bare", async function* () {
      charge(1);
      yield* charge(2).with({ summary: "used" });
      return "done";
    });
    await inEachCache({ workflows: [bare], determinismGuard: "off" }, async (env) => {
      assert.equal(await env.execute(bare), "done");
    });
    await using env = await createTestEnvironment({ workflows: [bare], determinismGuard: "off" });
    const again = wrong("bare", bare.definition.run as never);
    await env.restart({ workflows: [again] });
    await env.execute(again);
    assert.deepEqual(
      env.logs.map(({ message }) => message),
      ['activity "charge" was made and never yielded, so nothing of it has run. If its `yield*` was forgotten, write `yield* charge(…)`.'],
    );
  });
});

test("a call that stands alone fails the test and leaves the run as it is", async () => {
  const bare = wrong("bare", async function* () {
    charge(1);
    yield* sleep("1s");
    return "done";
  });
  await using env = await createTestEnvironment({ workflows: [bare] });
  const told = new RegExp(
    `activity "charge" was made at ${line} and never yielded, so nothing of it has run\\. If its \`yield\\*\` was forgotten, write \`yield\\* charge\\(…\\)\`\\.$`,
  );
  await assert.rejects(env.execute(bare, undefined, { id: "bare-1" }), told);
  assert.equal((await env.state("bare-1")).status, "Completed");
  assert.ok(env.trouble.some((text) => told.test(text)));
});

/** Sensible code that makes more effects than it yields: told in the log at most. */
const sensible: Record<string, [run: (input: never, ctx: never) => unknown, warnings: number]> = {
  "one of several": [
    async function* () {
      const options = [charge(1), charge(2), charge(3)];
      const table = {
        small: charge(4),
        large: charge(5),
      };
      return [yield* options[1] as (typeof options)[0], yield* table.large];
    },
    // Each of the others, once.
    3,
  ],
  "a compensation that was not needed": [
    async function* () {
      const refund = charge(-1);
      try {
        return yield* charge(1);
      } catch {
        return yield* refund;
      }
    },
    1,
  ],
  "used later, in parts": [
    async function* () {
      const effects = [1, 2, 3, 4].map((n) => charge(n));
      yield* sleep(1);
      const first = yield* all(effects.slice(0, 2));
      return [...first, ...(yield* all(effects.slice(2)))];
    },
    0,
  ],
  "used in a branch": [
    async function* () {
      const one = charge(1);
      const other = sleep(1);
      yield* all([
        async function* () {
          yield* other;
          return yield* one;
        },
      ]);
    },
    0,
  ],
  "used more than once": [
    async function* () {
      const again = charge(1);
      return [yield* again, yield* again, yield* atModule, yield* atModule];
    },
    0,
  ],
  "nested in others": [
    async function* () {
      const task = yield* spawn(timeout(all([charge(1), race([charge(2), sleep("1h")])]), "1 day"));
      yield* map([1, 2], (n) => charge(n));
      return yield* task;
    },
    0,
  ],
  "of a helper": [
    async function* () {
      const make = (n: number) => charge(n).with({ summary: "made" });
      const choose = async function* (): Flow<unknown> {
        yield* sleep(1);
        return step("chosen", async () => 1);
      };
      const chosen = yield* choose();
      yield* make(1);
      return yield* chosen as ReturnType<typeof charge>;
    },
    0,
  ],
  "of a run that fails": [
    async function* () {
      const late = charge(1);
      if (late instanceof Object) throw new Error("before its yield");
      yield* late as ReturnType<typeof charge>;
    },
    0,
  ],
  "a child that may be needed": [
    async function* () {
      const late = child(fine);
      const won = yield* race({ late, soon: sleep(1) });
      return won.winner;
    },
    0,
  ],
};
const fine = workflow("fine", async function* () {
  yield* sleep("1 day");
});

test("sensible code with effects to spare runs as it is, and each line is told at most once", async () => {
  for (const [name, [run, warnings]] of Object.entries(sensible)) {
    const sparing = wrong(name, run);
    await using env = await createTestEnvironment({ workflows: [sparing, fine] });
    for (let n = 0; n < 3; n++) {
      const ran = env.execute(sparing);
      if (name.includes("fails")) await assert.rejects(ran, /before its yield/);
      else await ran;
    }
    const told = env.logs.filter((log) => (log.data as { code?: string } | undefined)?.code === "EFFECT_NOT_YIELDED");
    assert.equal(told.length, warnings, `${name}: ${told.map(({ message }) => message).join("\n")}`);
    assert.deepEqual(env.trouble, [], name);
  }
});

test("effects that are made outside of workflows are nobody's", async () => {
  const makes = activity("makes", async () => {
    for (let n = 0; n < 10; n++) await Promise.resolve(charge(n));
    return String([charge(1)].length);
  });
  const calm = workflow("calm", async function* () {
    const results = yield* all([1, 2, 3].map(() => makes()));
    yield* sleep(1);
    return results.length;
  });
  await inEachCache({ workflows: [calm] }, async (env) => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => env.start(calm)));
    sleep(1);
    assert.equal(`${sleep(1)}`, "[sleep(…)]");
    assert.deepEqual(await Promise.all(runs.map((run) => run.result())), Array(20).fill(3));
    assert.deepEqual(
      env.logs.filter(({ level }) => level !== "info"),
      [],
    );
  });
});

test("a long run that drops an effect in every round stays small", async () => {
  const rounds = 2_000;
  const loop = wrong("loop", async function* () {
    for (let n = 0; n < rounds; n++) {
      const spare = sleep(1);
      if (spare !== undefined) yield* sleep(0);
    }
    return rounds;
  });
  await using env = await createTestEnvironment({ workflows: [loop] });
  assert.equal(await env.execute(loop), rounds);
  assert.equal(env.logs.length, 1);
});

test("an effect that a plain handler makes and drops is told like any other; one that it keeps for the workflow is not", async () => {
  const dropping = workflow("dropping", async function* (_: undefined, ctx) {
    const kept: ReturnType<typeof charge>[] = [];
    ctx.on(go, () => {
      kept.push(charge(1));
    });
    ctx.on(stop, () => {
      charge(2);
    });
    yield* condition(() => kept.length > 0);
    yield* all(kept);
    return "done";
  });
  await using env = await createTestEnvironment({ workflows: [dropping] });
  const fine = await env.start(dropping);
  await fine.send(go);
  assert.equal(await fine.result(), "done");
  assert.deepEqual(env.logs, []);
  const run = await env.start(dropping);
  await run.send(stop);
  const told = new RegExp(`activity "charge" was made at ${line} and never yielded`);
  const result = run.result();
  await run.send(go);
  await assert.rejects(result, told);
});

const Amount = Type.Object({ amount: Type.Number() });
const amounts: Record<string, Schema> = {
  typebox: Amount,
  zod: z.object({ amount: z.number() }),
  "zod that takes anything": z.object({ amount: z.coerce.boolean() }),
};

for (const [library, schema] of Object.entries(amounts))
  test(`an effect where ${library} stands is told as one, with its path and line, wherever a schema judges`, async () => {
    const Paid = event("paid", schema);
    const pay = activity("pay", { input: schema, output: schema }, async (given) => given as never);
    const kid = workflow.contract("kid", { input: schema });
    const Change = update("change", { output: schema });
    const odd = () => ({ amount: charge(1) }) as never;
    const ways: Record<string, [run: (input: never, ctx: never) => unknown, what: string]> = {
      "input of an activity": [
        async function* () {
          yield* pay(odd());
        },
        'input of activity "pay"',
      ],
      "input of a child": [
        async function* () {
          yield* child(kid, odd());
        },
        'input of workflow "kid"',
      ],
      send: [
        async function* () {
          yield* send("other", Paid, odd());
        },
        'payload of event "paid"',
      ],
      publish: [
        async function* () {
          yield* publish(Paid, odd());
        },
        'payload of event "paid"',
      ],
    };
    const workflows = Object.entries(ways).map(([name, [run]]) => wrong(name, run));
    const returning = workflow("returning", { output: schema }, async function* () {
      yield* sleep(1);
      return odd();
    });
    const again = workflow("again", { input: schema }, async function* (_, ctx) {
      return yield* ctx.continueAsNew(odd());
    });
    const answering = workflow("answering", async function* (_: undefined, ctx) {
      ctx.onUpdate(Change, { handler: () => odd() });
      yield* awaitEvent(go);
    });
    const found = (what: string) =>
      new RegExp(
        `${what} cannot be stored: \\$\\.amount is an effect that was not run: activity "charge", made at ${line}; write \`yield\\* charge\\(…\\)\` and pass its result`,
      );
    const isTold = (what: string) => (error: WorkflowError) => {
      assert.equal((error.cause as { code?: string }).code, "EFFECT_NOT_YIELDED", what);
      assert.match(error.message, found(what));
      return true;
    };
    await inEachCache({ workflows: [...workflows, returning, again, answering] }, async (env) => {
      for (const [index, [, what]] of Object.values(ways).entries())
        await assert.rejects(env.execute(workflows[index] as (typeof workflows)[number]), isTold(what));
      await assert.rejects(env.execute(returning), isTold('output of workflow "returning"'));
      await assert.rejects(env.execute(again, { amount: 1 } as never), isTold('input of workflow "again"'));
      const run = await env.start(answering);
      await assert.rejects(run.update(Change), isTold('output of update "change"'));
      await run.send(go);
      await run.result();
    });
  });

test("a generator where a schema stands is told as one", async () => {
  const part = async function* (): Flow<number> {
    return yield* charge(1);
  };
  const returning = workflow("returning", { output: Type.Number() }, async function* () {
    yield* sleep(1);
    return part() as never;
  });
  await inEachCache({ workflows: [returning] }, async (env) => {
    await assert.rejects(env.execute(returning), /output of workflow "returning" cannot be stored: \$ is a generator; forgot `yield\*`\?/);
  });
});

test("an effect among the attributes is told as one", async () => {
  const marking = workflow("marking", async function* (_: undefined, ctx) {
    ctx.attributes.total = charge(1) as never;
    yield* sleep(1);
  });
  await inEachCache({ workflows: [marking] }, async (env) => {
    await assert.rejects(env.execute(marking), (error: WorkflowError) => {
      assert.equal((error.cause as { code?: string }).code, "EFFECT_NOT_YIELDED");
      assert.match(error.message, /ctx\.attributes cannot be stored: \$\.total is an effect that was not run: activity "charge"/);
      return true;
    });
  });
});
