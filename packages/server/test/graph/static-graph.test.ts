/** What the source of a workflow says that it does. Sources are given as text, so that no compiler stands between. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { workflow } from "@wovyr/sdk";
import type { WorkflowDefinition } from "@wovyr/sdk/internal";
import fc from "fast-check";
import { staticGraph } from "../../src/index.ts";
import { assertGraph, linesOf } from "./assert-graph.ts";

/** A function with this source. */
function withSource(source: string): WorkflowDefinition {
  const run = Object.assign(async function* () {}, { toString: () => source });
  return { name: "w", version: "1", run };
}

function linesFrom(source: string): string[] {
  const graph = staticGraph(withSource(source));
  assertGraph(graph);
  return linesOf(graph).slice(1);
}

const bodyLines = (body: string): string[] => linesFrom(`async function* (input, ctx) { ${body} }`);

test("every effect is known by its name, however it is imported", () => {
  for (const [yielded, node] of [
    ['sleep("1h")', "timer sleep 1h"],
    ["(0, import_sdk.sleep)(duration(input.wait))", "timer sleep input.wait"],
    ["sleepUntil(input.at)", "timer sleep until input.at"],
    ["sdk.awaitEvent(Paid, { timeout: 1 })", "event Paid"],
    ["sleep2(5)", "timer sleep 5"],
    ["condition(() => ready)", "event condition () => ready"],
    ["child(Ship, input)", "child Ship"],
    ["sideEffect(() => 1)", "sideEffect side effect"],
    ['patched("x")', "sideEffect patched x"],
    ['step("look up", async () => 1)', "activity look up"],
    ["charge(input)", "activity charge"],
    ["shop.charge(input)", "activity shop.charge"],
    ['charge(input).with({ id: "x" })', "activity charge"],
    ["charge.with({ retry: 1 })(input)", "activity charge"],
    ["compensateNow()", "compensation compensate now"],
    ["helper(ctx, input)", "call helper"],
    ["send(input.id, Paid, 1)", "activity send Paid"],
    ["human(Form)", "event human Form"],
    ["input.effects[0]", "unknown computed: input.effects[0]"],
    ["what", "unknown computed: what"],
    ["new Thing()", "unknown computed: new Thing()"],
    ["match(input).with(1, 2).exhaustive()", "unknown computed: match(input).with(1, 2).exhaustive()"],
  ] as const) {
    for (const how of ["yield*", "yield"])
      assert.deepEqual(bodyLines(`${how} ${yielded};`), [`s1 ${node}`, "end", "start → s1", "s1 → end"], yielded);
  }
});

test("what undoes an effect is shown beside it, and leads nowhere", () => {
  assert.deepEqual(
    bodyLines(`
      yield* saga(async function* () {
        yield* charge(input).compensate(() => refund(input)).with({ id: "x" });
        yield* book(input).compensate(async function* (seat) { yield* sleep("1h"); yield* free(seat); });
      });
      yield* child(Ship, input).compensate(recall);
    `),
    [
      "s1 scope saga",
      "s2 activity charge",
      "s3 compensation undo",
      "s4 activity refund",
      "s5 activity book",
      "s6 compensation undo",
      "s7 timer sleep 1h",
      "s8 activity free",
      "s9 child Ship",
      "s10 compensation undo recall",
      "end",
      "start → s1",
      "s1 → s2 branch",
      "s2 → s3 compensation",
      "s3 → s4 branch",
      "s2 → s5",
      "s5 → s6 compensation",
      "s6 → s7 branch",
      "s7 → s8",
      "s5 → s9 join",
      "s9 → s10 compensation",
      "s9 → end",
    ],
  );
});

test("branches come from arrays, records and mapped lists, and generators in them are walked into", () => {
  assert.deepEqual(
    bodyLines(`
      yield* race({ paid: awaitEvent(Paid), async *late() { yield* sleep("1h"); yield* remind(input); } });
      yield* all([a1(input), async function* () { yield* b1(input); }, () => c1(input), ...input.more]);
      yield* all(input.items.map((item) => ship(item)));
      yield* map(input.items, async function* (item) { yield* ship(item); });
      yield* settled(input.list);
    `),
    [
      "s1 branches race",
      "s2 event Paid",
      "s3 timer sleep 1h",
      "s4 activity remind",
      "s5 branches all",
      "s6 activity a1",
      "s7 activity b1",
      "s8 activity c1",
      "s9 unknown computed branches: input.more",
      "s10 branches all",
      "s11 activity ship",
      "s12 branches map input.items",
      "s13 activity ship",
      "s14 branches settled",
      "s15 unknown computed branches: input.list",
      "end",
      "start → s1",
      's1 → s2 branch "paid"',
      's1 → s3 branch "late"',
      "s3 → s4",
      "s2 → s5 join",
      "s4 → s5 join",
      "s5 → s6 branch",
      "s5 → s7 branch",
      "s5 → s8 branch",
      "s5 → s9 branch",
      "s6 → s10 join",
      "s7 → s10 join",
      "s8 → s10 join",
      "s9 → s10 join",
      's10 → s11 branch "each of input.items"',
      "s11 → s12 join",
      's12 → s13 branch "each"',
      "s13 → s14 join",
      "s14 → s15 branch",
      "s15 → end join",
    ],
  );
});

test("a choice is shown where what is yielded hangs on it, and with it how it ends", () => {
  assert.deepEqual(
    bodyLines(`
      if (input.log) console.log(input);
      if (input.bad) throw new Error("bad");
      const x = input.a ? yield* a1(input) : 0;
      input.b && (yield* b1(input));
      switch (input.c) {
        case "one":
          yield* c1(input);
        case "two":
          yield* c2(input);
          break;
        case "three":
          return;
      }
    `),
    [
      "s1 choice input.bad",
      "s2 choice input.a",
      "s3 activity a1",
      "s4 choice input.b",
      "s5 activity b1",
      "s6 choice switch input.c",
      "s7 activity c1",
      "s8 activity c2",
      "end",
      "start → s1",
      's1 → s2 branch "false"',
      's2 → s3 branch "true"',
      "s3 → s4",
      's2 → s4 branch "false"',
      's4 → s5 branch "true"',
      "s5 → s6",
      's4 → s6 branch "false"',
      's6 → s7 branch ""one""',
      "s7 → s8",
      's6 → s8 branch ""two""',
      "s8 → end",
      's6 → end branch "no case"',
      's6 → end branch ""three""',
      's1 → end branch "true, throw"',
    ],
  );
});

test("loops lead back to their heads, and out where they end", () => {
  assert.deepEqual(
    bodyLines(`
      for (const item of input.items) {
        if (item.skip) continue;
        yield* ship(item);
      }
      outer: for (;;) {
        do {
          if (yield* check(input)) break outer;
        } while (yield* more(input));
      }
      while (true) yield* sleep(1);
    `),
    [
      "s1 loop for item of input.items",
      "s2 choice item.skip",
      "s3 activity ship",
      "s4 loop for ever",
      "s5 loop while yield* more(input)",
      "s6 activity check",
      "s7 choice yield* check(input)",
      "s8 activity more",
      "s9 loop while true",
      "s10 timer sleep 1",
      "start → s1",
      "s1 → s2 branch",
      's2 → s3 branch "false"',
      "s3 → s1 loop",
      's2 → s1 loop "true"',
      "s1 → s4",
      "s4 → s5 branch",
      "s5 → s6 branch",
      "s6 → s7",
      's7 → s8 branch "false"',
      "s8 → s5 loop",
      "s8 → s4 loop",
      's7 → s9 branch "true"',
      "s9 → s10 branch",
      "s10 → s9 loop",
    ],
  );
});

test("what is thrown leads to the catch, and everything through the finally", () => {
  assert.deepEqual(
    bodyLines(`
      try {
        yield* a1(input);
        if (input.early) return 1;
        throw new Error();
      } catch (error) {
        yield* b1(input);
        throw error;
      } finally {
        yield* c1(input);
      }
    `),
    [
      "s1 try try … finally",
      "s2 activity a1",
      "s3 choice input.early",
      "s4 activity b1",
      "s5 activity c1",
      "end",
      "start → s1",
      "s1 → s2",
      "s2 → s3",
      's1 → s4 branch "catch"',
      's3 → s4 branch "false"',
      's3 → s5 branch "true"',
      "s4 → s5",
      "s5 → end",
      's5 → end "throw"',
    ],
  );
});

test("tasks, scopes, helpers and handlers", () => {
  assert.deepEqual(
    bodyLines(`
      async function* twice(n) { yield* a1(n); if (n) yield* twice(n - 1); }
      ctx.on(Go, async function* (n) { yield* g1(n); });
      ctx.onUpdate(Add, { validate() {}, handler: (n) => n });
      const task = yield* spawn(b1(input));
      yield* spawn(function* () {});
      yield* twice(2);
      yield* timeout(shield(task), "1 day");
      yield* continueAsNew(input);
      yield* never(input);
    `),
    [
      "s1 event on Go",
      "s2 activity g1",
      "s3 event update Add",
      "s4 scope spawn",
      "s5 activity b1",
      "s6 scope spawn",
      "s7 call twice",
      "s8 activity a1",
      "s9 choice n",
      "s10 call twice",
      "s11 scope timeout 1 day",
      "s12 scope shield",
      "s13 scope join task",
      "s14 end continue as new",
      "end",
      "start → s1 event",
      "s1 → s2 branch",
      "start → s3 event",
      "start → s4",
      "s4 → s5 branch",
      "s4 → s6",
      "s6 → s7",
      "s7 → s8",
      "s8 → s9",
      's9 → s10 branch "true"',
      "s10 → s11",
      's9 → s11 branch "false"',
      "s11 → s12 branch",
      "s12 → s13 branch",
      "s5 → s13 join",
      "s13 → s14 join",
      "s14 → end",
      "s2 → end join",
      "s6 → end join",
    ],
  );
});

test("what cannot be read is said, and is no error", () => {
  assert.deepEqual(linesFrom("function () { [native code] }")[0], "s1 unknown not known: its code is native or bound");
  assert.match(linesFrom("this is no code")[0] ?? "", /^s1 unknown not known: its source is not that of a function$/);
  assert.match(linesFrom("(".repeat(100_000))[0] ?? "", /unknown not known/);
  const contract = workflow.contract("c", {});
  assert.match(linesOf(staticGraph(contract))[1] ?? "", /it is a contract/);
  assert.deepEqual(linesFrom('async function*(e,t){yield*n("1h");yield*r.sleep(5);await i(t)}').slice(0, 2), [
    "s1 unknown n: its name is lost (minified source)",
    "s2 timer sleep 5",
  ]);
  assert.match(linesFrom(`async function* () { yield* ${"a ? b : ".repeat(50_000)}c; }`)[0] ?? "", /unknown/);
});

test("methods, arrows and what older targets make of async generators are read alike", () => {
  const expected = ["s1 activity charge", "s2 timer sleep 1h", "end", "start → s1", "s1 → s2", "s2 → end"];
  for (const source of [
    'async *run(input) { yield* charge(input); yield* sleep("1h"); }',
    'async function* named(input) { yield* charge(input); yield sleep("1h"); }',
    'function (input) { return __asyncGenerator(this, arguments, function* () { yield __await(yield* __asyncDelegator(__asyncValues(charge(input)))); yield yield __await(sleep("1h")); }); }',
  ])
    assert.deepEqual(linesFrom(source), expected, source);
  assert.deepEqual(linesFrom("(input, ctx) => helper(ctx, input)"), ["s1 call helper", "end", "start → s1", "s1 → end"]);
});

test("a graph has no more nodes than it may", () => {
  const graph = staticGraph(withSource(`async function* () { ${"yield* work(1);".repeat(100)} }`), { maxNodes: 20 });
  assertGraph(graph);
  assert.equal(graph.nodes.length, 20);
  assert.deepEqual(
    graph.nodes.slice(-2).map(({ kind, name }) => [kind, name]),
    [
      ["more", "83 more"],
      ["end", "end"],
    ],
  );
  const loops = staticGraph(
    withSource(`async function* () { ${"for (const x of xs) { if (x) yield* all([work(1)]); else break; }".repeat(30)} }`),
    {
      maxNodes: 12,
    },
  );
  assertGraph(loops);
  assert.equal(loops.nodes.length, 12);
});

test("random code of every sort gives a graph that is whole", () => {
  let labels = 0;
  const code = fc.letrec<{ statement: string; effect: string; block: string }>((tie) => ({
    block: fc.array(tie("statement"), { maxLength: 4 }).map((lines) => `{ ${lines.join(" ")} }`),
    effect: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("work(x)", "sleep(1)", "awaitEvent(Go)", "task", "helper(ctx)", "x.y", "(x ? work(1) : sleep(2))", "(x ?? work(1))"),
      fc.array(tie("effect"), { maxLength: 3 }).map((parts) => `all([${parts.join(", ")}])`),
      tie("block").map((body) => `race({ a: async function* () ${body}, b: sleep(1) })`),
      tie("effect").map((effect) => `timeout(${effect}, 5)`),
      tie("effect").map((effect) => `spawn(${effect})`),
      tie("block").map((body) => `unknown(async function* () ${body})`),
    ),
    statement: fc.oneof(
      { maxDepth: 4 },
      tie("effect").map((effect) => `yield* ${effect};`),
      tie("effect").map((effect) => `const task = yield* spawn(${effect});`),
      fc.constantFrom("return;", "throw x;", "x();", "if (x) return yield* work(1);", "for (;;) {}"),
      fc.tuple(tie("block"), tie("block")).map(([yes, no]) => `if (x) ${yes} else ${no}`),
      fc
        .tuple(fc.constantFrom("for (;;)", "while (x)", "for (const y of ys)", "while (yield* work(1))"), tie("block"), fc.boolean())
        .map(([head, body, out]) => `${head} { ${body} ${out ? "if (x) break; else continue;" : ""} }`),
      tie("block").map((body) => `do ${body} while (x);`),
      fc
        .tuple(tie("block"), tie("block"), tie("block"), fc.constantFrom(1, 2, 3))
        .map(([body, caught, cleaned, how]) => `try ${body}${how & 1 ? ` catch ${caught}` : ""}${how & 2 ? ` finally ${cleaned}` : ""}`),
      fc.tuple(tie("block"), tie("block")).map(([one, two]) => `switch (x) { case 1: ${one} case 2: ${two} break; default: x(); }`),
      tie("block").map((body) => {
        // A label must not be that of a block around it.
        labels += 1;
        return `l${labels}: { ${body} if (x) break l${labels}; }`;
      }),
    ),
  }));
  fc.assert(
    fc.property(code.block, fc.integer({ min: 10, max: 60 }), (body, maxNodes) => {
      const graph = staticGraph(withSource(`async function* (x, ctx) { ${body} }`.replaceAll("const task", "var task")), { maxNodes });
      assert.ok(!graph.nodes.some(({ name }) => name.startsWith("not known")), graph.nodes[1]?.name);
      assertGraph(graph);
      assert.ok(graph.nodes.length <= maxNodes);
    }),
    { numRuns: 2_000 },
  );
});
