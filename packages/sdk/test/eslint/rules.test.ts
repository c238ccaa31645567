import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import wovyr, { configs, rules } from "@wovyr/sdk/eslint";
import { type ESLint, Linter, RuleTester } from "eslint";
import { defineConfig } from "eslint/config";
import { makers } from "../../src/eslint/workflow-code.ts";
import * as sdk from "../../src/index.ts";

RuleTester.describe = describe;
RuleTester.it = it;
RuleTester.itOnly = it.only;
const tester = new RuleTester();
const run = (name: keyof typeof rules, tests: Parameters<RuleTester["run"]>[2]) => tester.run(name, rules[name], tests);

const head = `import { activity, all, race, sideEffect, sleep, spawn, step, workflow } from "@wovyr/sdk";
const charge = activity("charge", async () => fetch("http://psp"));
`;
const inWorkflow = (body: string) => `${head}export const order = workflow("order", async function* (input, ctx) {\n  ${body}\n});`;
const inHelper = (body: string) => `${head}async function* help(ctx) {\n  yield* sleep("1s");\n  ${body}\n}`;

run("yield-effects", {
  valid: [
    inWorkflow("return yield* charge(input);"),
    inWorkflow("const options = [charge(1), charge(2)]; return yield* options[input];"),
    inWorkflow("const undo = charge(-1); try { yield* charge(1); } catch { yield* undo; }"),
    inWorkflow("yield* all([charge(1), charge(2).with({ id: 'x' }), () => charge(3)]);"),
    inWorkflow("yield* race({ a: () => { return charge(1); }, b: sleep('1s') });"),
    inWorkflow("const task = yield* spawn(charge(1)); yield* task.cancel();"),
    inWorkflow("yield* charge(1).compensate((paid) => charge(-paid)).with({ id: 'x' });"),
    inWorkflow("if (yield* charge(1)) yield* sleep('1s');"),
    inWorkflow("console.log(help()); other.cancel(); thing.with(1);"),
    // Not workflow code.
    `${head}sleep("1s"); async function plain() { charge(1); }`,
    // Another module's function of the same name.
    `import { sleep } from "./time.js"; import { workflow } from "@wovyr/sdk"; workflow("w", async function* () { sleep(1); });`,
    inWorkflow("const sleep = () => 1; sleep();"),
  ],
  invalid: [
    { code: inWorkflow("charge(1);"), output: inWorkflow("yield* charge(1);"), errors: [{ messageId: "dropped", line: 4 }] },
    { code: inWorkflow("charge(1).with({});"), output: inWorkflow("yield* charge(1).with({});"), errors: [{ messageId: "dropped" }] },
    {
      code: inWorkflow("charge(1).with({}).compensate((paid) => charge(-paid));"),
      output: inWorkflow("yield* charge(1).with({}).compensate((paid) => charge(-paid));"),
      errors: [{ messageId: "dropped" }],
    },
    {
      code: inWorkflow("yield* charge(1).compensate(() => { charge(-1); });"),
      output: null,
      errors: [{ messageId: "dropped" }],
    },
    { code: inWorkflow("void charge(1);"), output: null, errors: [{ messageId: "dropped" }] },
    {
      code: inWorkflow("const paid = await charge(1);"),
      output: inWorkflow("const paid = yield* charge(1);"),
      errors: [{ messageId: "awaited" }],
    },
    { code: inWorkflow("const sum = await charge(1) + 1;"), output: null, errors: [{ messageId: "awaited" }] },
    { code: inWorkflow("if (charge(1)) yield* sleep(1);"), output: null, errors: [{ messageId: "tested" }] },
    { code: inWorkflow("if (!charge(1)) yield* sleep(1);"), output: null, errors: [{ messageId: "tested" }] },
    { code: inWorkflow("return charge(1) > 5;"), output: null, errors: [{ messageId: "calculated" }] },
    { code: inWorkflow("return charge(1);"), output: inWorkflow("return yield* charge(1);"), errors: [{ messageId: "returned" }] },
    {
      code: inWorkflow("const task = yield* spawn(charge(1)); task.cancel();"),
      output: inWorkflow("const task = yield* spawn(charge(1)); yield* task.cancel();"),
      errors: [{ messageId: "dropped", data: { call: "task.cancel" } }],
    },
    { code: inHelper("charge(1);"), output: inHelper("yield* charge(1);"), errors: [{ messageId: "dropped" }] },
    {
      code: inWorkflow("yield* all([async function* () { charge(1); yield* sleep(1); }]);"),
      output: inWorkflow("yield* all([async function* () { yield* charge(1); yield* sleep(1); }]);"),
      errors: [{ messageId: "dropped" }],
    },
    {
      code: `import * as w from "@wovyr/sdk"; const c = w.workflow.contract("x", {}); c.implement(async function* () { w.sleep(1); });`,
      output: `import * as w from "@wovyr/sdk"; const c = w.workflow.contract("x", {}); c.implement(async function* () { yield* w.sleep(1); });`,
      errors: [{ messageId: "dropped", data: { call: "w.sleep" } }],
    },
    {
      code: `import { activity as act, workflow } from "@wovyr/sdk"; const pay = act.contract("pay", {}).implement(async () => 1); workflow("x", async function* () { pay(1); });`,
      output: `import { activity as act, workflow } from "@wovyr/sdk"; const pay = act.contract("pay", {}).implement(async () => 1); workflow("x", async function* () { yield* pay(1); });`,
      errors: [{ messageId: "dropped" }],
    },
  ],
});

run("no-foreign-await", {
  valid: [
    inWorkflow("yield* step('load', async () => await fetch('http://x'));"),
    inWorkflow("yield* charge(await charge(1));"), // yield-effects tells that one
    `${head}async function load() { return await fetch("http://x"); }`,
    `async function* lines(source) { for await (const line of source) yield* line.split(""); }`,
  ],
  invalid: [
    { code: inWorkflow("const body = await fetch('http://x');"), errors: [{ messageId: "foreign", line: 4 }] },
    { code: inWorkflow("for await (const line of input) yield* charge(line);"), errors: [{ messageId: "loop" }] },
    { code: inWorkflow("const load = async () => await fetch('http://x');"), errors: [{ messageId: "foreign" }] },
    { code: inHelper("await Promise.all([]);"), errors: [{ messageId: "foreign" }] },
  ],
});

run("no-nondeterminism", {
  valid: [
    inWorkflow("yield* sideEffect(() => process.env.REGION ?? Date.now());"),
    inWorkflow("yield* step('s', () => Math.random());"),
    inWorkflow("return [ctx.now(), new Date(5), Date.parse(input), Math.max(1, 2), Date.UTC(2026)];"),
    inWorkflow("const Date = { now: () => 1 }; return Date.now();"),
    `${head}const at = Date.now(); export const later = () => setTimeout(() => {}, at);`,
    `${head}activity("a", async () => Math.random());`,
  ],
  invalid: [
    ["Date.now()", "Date.now()"],
    ["new Date()", "new Date()"],
    ["Date()", "Date()"],
    ["Math.random()", "Math.random()"],
    ["globalThis.Math.random()", "Math.random()"],
    ["performance.now()", "performance.now()"],
    ["process.hrtime.bigint()", "process.hrtime.bigint()"],
    ["crypto.randomUUID()", "crypto.randomUUID()"],
    ["setTimeout(() => {}, 1)", "setTimeout()"],
    ["setImmediate(() => {})", "setImmediate()"],
    ["fetch('http://x')", "fetch()"],
    ["queueMicrotask(() => {})", "queueMicrotask()"],
    ["process.nextTick(() => {})", "process.nextTick()"],
    ["process.env.REGION", "process.env"],
    ["[1, 2].map(() => Math.random())", "Math.random()"],
  ].flatMap(([code, what]) => [
    { code: inWorkflow(`return ${code};`), errors: [{ message: new RegExp(what?.replaceAll(/[.()]/g, "\\$&") ?? "") }] },
    { code: inHelper(`return ${code};`), errors: 1 },
  ]) as never,
});

test("Node's modules are known by what is imported from them", () => {
  const messages = new Linter().verify(
    `import { randomUUID as id } from "node:crypto";
import crypto from "node:crypto";
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers";
import { workflow } from "@wovyr/sdk";
workflow("w", async function* () { return [id(), crypto.randomBytes(3), performance.now(), setTimeout(f, 1)]; });`,
    [configs.recommended],
  );
  assert.deepEqual(
    messages.map(({ ruleId, message }) => `${ruleId}: ${message}`),
    [
      "wovyr/no-nondeterminism: A replay would get another value of `crypto.randomUUID()`. Use `ctx.uuid()`.",
      "wovyr/no-nondeterminism: A replay would get another value of `crypto.randomBytes()`. Use `yield* sideEffect(() => …)`, which records it.",
      "wovyr/no-nondeterminism: A replay would get another value of `performance.now()`. Use `ctx.now()`.",
      "wovyr/no-nondeterminism: A replay would get another value of `setTimeout()`. Use `yield* sleep(…)`.",
    ],
  );
});

test("the recommended config switches every rule on", () => {
  const messages = new Linter().verify(inWorkflow("charge(1); await fetch('http://x');"), [wovyr.configs.recommended]);
  assert.deepEqual(
    messages.map(({ ruleId }) => ruleId),
    ["wovyr/yield-effects", "wovyr/no-foreign-await", "wovyr/no-nondeterminism"],
  );
  assert.deepEqual(
    Object.keys(configs.recommended.rules),
    Object.keys(rules).map((name) => `wovyr/${name}`),
  );
});

test("it is a plugin, and a config, as ESLint types them", () => {
  const plugin: ESLint.Plugin = wovyr;
  assert.equal(defineConfig([configs.recommended]).length, 1);
  assert.ok(plugin.rules);
});

test("every function of the SDK that makes an effect is known", () => {
  const others = new Set(["activity", "duration", "event", "query", "update", "workflow"]);
  const functions = Object.entries(sdk).filter(([name, value]) => typeof value === "function" && /^[a-z]/.test(name) && !others.has(name));
  for (const [name] of functions) assert.ok(makers.has(name), `${name} is not in the list of makers of eslint/workflow-code.ts`);
});
