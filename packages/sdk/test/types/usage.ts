// biome-ignore-all format: a mistake and the line that expects it stay together
// biome-ignore-all lint/suspicious/noConfusingVoidType: what an effect without a result gives is `void`
/**
 * How the SDK is used, as types: every assertion and every `@ts-expect-error` is checked by `npm run typecheck`; nothing here runs.
 * Numbers are stable. Missing ones belong to parts of the SDK that do not exist yet.
 */
import type { TSchema } from "@sinclair/typebox";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import * as w from "../../src/index.ts";
import {
  type Activity,
  type AnyWorkflow,
  activity,
  all,
  any,
  awaitEvent,
  type Branch,
  child,
  duration,
  type Effect,
  event,
  type Flow,
  map,
  publish,
  RetryAfterError,
  race,
  select,
  settled,
  sideEffect,
  sleep,
  sleepUntil,
  spawn,
  step,
  type Task,
  TimeoutError,
  Type,
  timeout,
  type Workflow,
  type WorkflowContext,
  workflow,
} from "../../src/index.ts";

type Eq<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const is = <A, B>(_: Eq<A, B>) => {};
const out = <O>(_workflow: Workflow<never, O>): O => undefined as O;

// ─── definitions ───
const Order = Type.Object({ id: Type.String(), total: Type.Number({ minimum: 0 }) });
const PaymentReceived = event("payment.received", Type.Object({ amount: Type.Number() }));
const Approved = event("approved");
class OutOfStock extends Error {}
const reserve = activity(
  "reserve",
  {
    input: Order,
    output: Type.Object({ reservation: Type.String() }),
    retry: { maxAttempts: 5, backoff: "exponential", initialDelay: "1s", maxDelay: "1m", jitter: "full" },
    timeout: { startToClose: "30s", scheduleToClose: "10m" },
    errors: [OutOfStock],
  },
  async (order, ctx) => {
    ctx.signal.throwIfAborted();
    return { reservation: order.id + ctx.idempotencyKey };
  },
);
const release = activity("release", async (_reservation: string) => {});
const score = activity("score", async (n: number) => n * 2);
const ping = activity("ping", async () => "pong" as const);
const maybe = activity("maybe", async (n?: number) => n ?? 0);
const withCtx = activity("withCtx", { output: Type.Number() }, async (n: string, ctx) => n.length + ctx.attempt);
const inOnly = activity("inOnly", { input: Order, retry: { maxAttempts: 1 } }, async (o) => ({ upper: o.id.toUpperCase() }));
const syncFn = activity("syncFn", (s: string) => s.length);
const ship = workflow("ship", { input: Type.Object({ reservation: Type.String() }) }, async function* (s) {
  yield* sleep("1h");
  return { tracking: s.reservation };
});

// 1 the page's own example
export const order = workflow("order", { version: "1.0.0", input: Order }, async function* (order, ctx) {
  const { reservation } = yield* reserve(order);
  const [risk, quote] = yield* all([score(order.total), ping()]);
  is<typeof risk, number>(true);
  is<typeof quote, "pong">(true);
  if (risk > 0.8) yield* review(order);
  const paid = yield* race({ event: awaitEvent(PaymentReceived, { match: (p) => p.amount > 0 }), late: sleep("3 days") });
  if (paid.winner === "late") {
    is<typeof paid.value, void>(true);
    throw new Error("not paid in time");
  }
  is<typeof paid.value, { amount: number }>(true);
  ctx.log.info("paid", { amount: paid.value.amount });
  return yield* child(ship, { reservation });
});
async function* review(_order: { id: string }) {
  const e = yield* awaitEvent(PaymentReceived, { timeout: "7d" });
  return e.amount;
}
{
  const o = out(order);
  is<typeof o, { tracking: string }>(true);
}

// 2-8 activities
export async function* acts() {
  const a = yield* ping();
  is<typeof a, "pong">(true);
  const b = yield* maybe();
  const b2 = yield* maybe(3);
  is<typeof b, number>(true);
  is<typeof b2, number>(true);
  const c = yield* withCtx("x");
  is<typeof c, number>(true);
  const d = yield* inOnly({ id: "1", total: 2 });
  is<typeof d, { upper: string }>(true);
  const e = yield* syncFn("x");
  is<typeof e, number>(true);
  const f = yield* release("r");
  is<typeof f, void>(true);
  const g = yield* reserve({ id: "1", total: 1 })
    .with({ id: "first", retry: { maxAttempts: 2 } })
    .with({ summary: "x", timeout: { startToClose: "1s" } });
  is<typeof g, { reservation: string }>(true);
  const i = yield* step("charge", async (ctx) => ({ id: ctx.idempotencyKey }));
  is<typeof i, { id: string }>(true);
  const j = yield* step("charge", () => 5, { retry: { maxAttempts: 1 } }).with({ summary: undefined });
  is<typeof j, number>(true);
}
// @ts-expect-error 9 wrong input type
reserve({ id: 1, total: 2 });
// @ts-expect-error 10 missing input
reserve();
// @ts-expect-error 11 input to an activity without one
ping(5);
// @ts-expect-error 12 misspelt option
activity("x", { input: Order, retries: 3 }, async (o) => o.id);
// @ts-expect-error 13 result does not fit the output schema
activity("x", { input: Order, output: Type.Object({ reservation: Type.String() }) }, async (o) => ({ reservation: o.total }));
// @ts-expect-error 14 misspelt duration
sleep("3 dyas");
// @ts-expect-error 15 unannotated parameter without schema is not silently any
activity("x", { retry: { maxAttempts: 3 } }, async (o) => o.id);
// @ts-expect-error 16 activity that returns an effect
activity("x", async () => sleep("1s"));
// @ts-expect-error 16b misspelt call option
reserve({ id: "1", total: 1 }).with({ sumary: "x" });
// @ts-expect-error 16c a class that is no error
activity("x", { errors: [Date] }, async () => 5);

// 19 yield mistakes
// @ts-expect-error yields a number
workflow("x", async function* () { yield 5; });
// @ts-expect-error yields a generator (forgot the star)
workflow("x", async function* () { yield review({ id: "x" }); });
// @ts-expect-error returns an effect (forgot yield*)
workflow("x", async function* () { return reserve({ id: "1", total: 1 }); });
// @ts-expect-error async function instead of async function*
workflow("x", async () => 5);
// @ts-expect-error yield* of a promise
workflow("x", async function* () { yield* Promise.resolve(5); });
// @ts-expect-error forgot yield*: the effect has no such property
workflow("x", async function* () { const r = reserve({ id: "1", total: 1 }); return r.reservation; });
// @ts-expect-error await instead of yield*: the effect has no such property
workflow("x", async function* () { const r = await reserve({ id: "1", total: 1 }); return r.reservation; });
// plain yield is unknown inside a workflow
workflow("x", async function* () { const r = yield reserve({ id: "1", total: 1 }); is<typeof r, unknown>(true); });
workflow("x", { input: Order }, async function* () { yield sleep("1s"); return 1; });
// @ts-expect-error misspelt workflow option
workflow("x", { input: Order, verison: "1" }, async function* (o) { return o.id; });
// @ts-expect-error output does not fit
workflow("x", { input: Order, output: Type.Object({ ok: Type.Boolean() }) }, async function* (o) { return { ok: o.id }; });
// forgotten yield* that TypeScript cannot see (run time must): a bare statement
workflow("x", async function* () { sleep("1s"); yield* ping(); });

// 20 workflows without input, without options, with optional input
const nightly = workflow("nightly", async function* () { yield* sleep("1h"); return 7; });
const hello = workflow("hello", async function* (name: string) { return `hello ${name}`; });
const opt = workflow("opt", async function* (name?: string) { return name ?? "x"; });
const voidInput = workflow("voidInput", { version: "2.0.0" }, async function* (_: unknown, ctx) { return ctx.id; });
export async function* children() {
  const a = yield* child(nightly);
  is<typeof a, number>(true);
  const b = yield* child(hello, "x", { onParentClose: "abandon" });
  is<typeof b, string>(true);
  const c = yield* child(opt);
  const c2 = yield* child(opt, "y");
  is<typeof c, string>(true);
  is<typeof c2, string>(true);
  const d = yield* child(voidInput);
  is<typeof d, string>(true);
  const t = yield* spawn(child(hello, "x"));
  is<typeof t, Task<string>>(true);
  const r = yield* t;
  is<typeof r, string>(true);
  yield* t.cancel();
  yield* t.cancel("no longer wanted");
}
// @ts-expect-error 21 wrong child input
child(ship, { reservation: 1 });
// @ts-expect-error 22 missing child input
child(hello);
// @ts-expect-error 23 excess property
child(ship, { reservation: "x", extra: 1 });
// @ts-expect-error 24 wrong enum
child(hello, "x", { onParentClose: "kill" });

// 25 combinators
export async function* combine(flag: boolean, dyn: Effect<number>[], rec: Record<string, Effect<number>>) {
  const a = yield* all({ x: score(1), y: review({ id: "1" }), z: sleep("1s") });
  is<typeof a, { x: number; y: number; z: void }>(true);
  const b = yield* all(dyn);
  is<typeof b, number[]>(true);
  const b1 = yield* all([1, 2].map((n) => score(n)));
  is<typeof b1, number[]>(true);
  const b2 = yield* all([]);
  is<typeof b2, []>(true);
  const b3 = yield* all(rec);
  is<typeof b3, Record<string, number>>(true);
  const c = yield* race({ u: flag ? sleep("1s") : score(1), v: ping() });
  if (c.winner === "u") is<typeof c.value, number | void>(true);
  else is<typeof c.value, "pong">(true);
  const { winner, value } = yield* race({ paid: awaitEvent(PaymentReceived), late: sleep(1000) });
  if (winner === "paid") is<typeof value, { amount: number }>(true);
  const d = yield* settled([score(1), ping()]);
  const d0 = d[0];
  if (d0.status === "fulfilled") is<typeof d0.value, number>(true);
  const e = yield* any([score(1), ping()]);
  if (e.winner === 1) is<typeof e.value, "pong">(true);
  else is<typeof e.value, number>(true);
  const f = yield* any({ a: score(1), b: ping() });
  if (f.winner === "b") is<typeof f.value, "pong">(true);
  // own return types, inline branches
  const g = yield* all([
    async function* () { yield* sleep("1s"); return { k: 1 }; },
    async function* () { return "s"; },
    (async function* () { yield* sleep("1s"); return true; })(),
  ]);
  is<typeof g, [{ k: number }, string, boolean]>(true);
  const h = yield* race({ slow: async function* () { yield* sleep("1h"); return { a: 1 }; }, fast: sleep("1s") });
  if (h.winner === "slow") is<typeof h.value, { a: number }>(true);
  // dynamic record: winner is a string
  const i = yield* race(rec);
  is<typeof i, { winner: string; value: number }>(true);
  // tasks
  const t1 = yield* spawn(score(1));
  const t2 = yield* spawn(async function* () { return "x"; });
  const j = yield* select({ t1, t2 });
  if (j.winner === "t2") is<typeof j.value, string>(true);
  const k = yield* all([t1, t2]);
  is<typeof k, [number, string]>(true);
  // nested
  const l = yield* all([all([score(1), ping()]), race({ a: score(1) })]);
  is<typeof l, [[number, "pong"], { winner: "a"; value: number }]>(true);
  const m = yield* timeout(race({ a: score(1) }), "5s");
  is<typeof m, { winner: "a"; value: number }>(true);
}
// 26 race of an array, as Promise.race: the winner is the index
export async function* mirrors(urls: string[]) {
  const a = yield* race([score(1), ping()]);
  if (a.winner === 1) is<typeof a.value, "pong">(true);
  const b = yield* race(urls.map((u) => release(u)));
  is<typeof b, { winner: number; value: void }>(true);
}
// @ts-expect-error 26b forgotten yield* before destructuring
export const [lost] = all([score(1), ping()]);
// @ts-expect-error 26c forgotten yield* on the items
map(step("list", () => [1, 2]), (_n) => sleep("1s"));
// @ts-expect-error 26d iterating over an effect
for (const x of sleep("1s")) void x;
// @ts-expect-error 27 a promise is no branch
all([Promise.resolve(1)]);
// @ts-expect-error 28 an effect is no record of branches
all(score(1));
// @ts-expect-error 29 select takes tasks only
select({ a: sleep("1s") });
// @ts-expect-error 30 async callback in map
map([1, 2], async (n) => n);
// @ts-expect-error 31 async arrow as branch
race({ a: async () => 5 });

// 32 map
export async function* maps(rows: readonly { id: string }[], set: Set<number>) {
  const a = yield* map(rows, (r) => reserve({ id: r.id, total: 1 }), { concurrency: 8 });
  is<typeof a, { reservation: string }[]>(true);
  const b = yield* map([...set], async function* (n, i) {
    const s = yield* score(n);
    if (s > 3) return null;
    return { s, i };
  });
  is<typeof b, ({ s: number; i: number } | null)[]>(true);
  const c = yield* map(rows, (r) => child(hello, r.id), { concurrency: 2, tolerateFailures: "10%" });
  const c0 = c[0];
  if (c0?.status === "fulfilled") is<typeof c0.value, string>(true);
}
// @ts-expect-error 32b misspelt option
map([1], (n) => score(n), { concurency: 2 });

// 33 events
export async function* events(opts: { timeout?: "1d" | undefined }) {
  const a = yield* awaitEvent(PaymentReceived);
  is<typeof a, { amount: number }>(true);
  const b = yield* awaitEvent(PaymentReceived, { timeout: "1d" });
  is<typeof b, { amount: number }>(true);
  const c = yield* awaitEvent(PaymentReceived, opts);
  is<typeof c, { amount: number }>(true);
  const d = yield* awaitEvent(Approved, { timeout: "1d" });
  is<typeof d, void>(true);
  const e = yield* awaitEvent(PaymentReceived, { match: (p) => p.amount > 5 });
  is<typeof e, { amount: number }>(true);
}
// 33a keys, publications, triggers
export async function* published(order: { id: string }) {
  const a = yield* awaitEvent(PaymentReceived, { key: order.id, timeout: "1d" });
  is<typeof a, { amount: number }>(true);
  const b = yield* publish(PaymentReceived, { amount: 1 }, { key: order.id, retry: { maxAttempts: 3 } });
  is<typeof b, void>(true);
  yield* publish(Approved);
  yield* publish(Approved, undefined, { idempotencyKey: "k" }).with({ summary: "s" });
}
workflow("t1", { input: Type.Object({ amount: Type.Number() }), triggers: [PaymentReceived] }, async function* (p) {
  return p.amount;
});
workflow("t2", { triggers: [PaymentReceived] }, async function* (p: { amount: number }) {
  return p.amount;
});
workflow("t3", { triggers: [Approved] }, async function* () {});
workflow.contract("t4", { input: Type.Object({ amount: Type.Number() }), triggers: [PaymentReceived] });
// @ts-expect-error 33aa the payload is no input of this workflow
workflow("t5", { input: Order, triggers: [PaymentReceived] }, async function* (p) { return p.id; });
// @ts-expect-error 33ab nor of one whose function says what it takes
workflow("t6", { triggers: [PaymentReceived] }, async function* (p: { id: string }) { return p.id; });
// @ts-expect-error 33ac nor of a contract
workflow.contract("t7", { input: Order, triggers: [PaymentReceived] });
// @ts-expect-error 33ad a payload of another shape
publish(PaymentReceived, { amount: "1" });
// @ts-expect-error 33ae a payload that the event does not carry
publish(Approved, 1);
// @ts-expect-error 33af a key is a text
awaitEvent(PaymentReceived, { key: 5 });

// @ts-expect-error 33b the payload has no such field
awaitEvent(PaymentReceived, { match: (p) => p.amuont > 5 });

// 37 sideEffect, context
const loop = workflow("loop", { input: Type.Object({ n: Type.Number() }) }, async function* (i, ctx) {
  const coin = yield* sideEffect(() => i.n + ctx.random());
  is<typeof coin, number>(true);
  yield* sleepUntil(new Date(+ctx.now() + 5));
  yield* sleepUntil("2030-01-31T09:00:00Z");
  is<typeof ctx.memo, Readonly<Record<string, unknown>>>(true);
  const ids: string[] = [ctx.id, ctx.runId, ctx.tenant, ctx.correlationId, ctx.uuid()];
  void [ids, ctx.historyLength];
  return "done" as const;
});
{
  const o = out(loop);
  is<typeof o, "done">(true);
}

// 40 variables, attributes
export const live = workflow(
  "live",
  { input: Order, variables: () => ({ stage: "new" as "new" | "paid", items: [] as string[] }) },
  async function* (o, ctx) {
    yield* awaitEvent(PaymentReceived);
    ctx.variables.stage = "paid";
    ctx.variables.items.push("x");
    ctx.attributes.customer = o.id;
    return ctx.variables.items.length;
  },
);
// @ts-expect-error 41 unknown variable
workflow("x", { input: Order, variables: () => ({ a: 1 }) }, async function* (_o, ctx) { ctx.variables.b = 1; });
// @ts-expect-error 41b an attribute is a scalar, a date or a list of texts
workflow("x", { input: Order }, async function* (_o, ctx) { ctx.attributes.customer = { id: 1 }; });

// 44 Standard Schema: zod, valibot, arktype; input and output types differ
const Z = z.object({ id: z.string(), n: z.coerce.number().default(1), at: z.string().transform((s) => new Date(s)) });
const zact = activity("zact", { input: Z, output: z.object({ when: z.date().default(() => new Date(0)) }) }, async (x) => {
  is<typeof x, { id: string; n: number; at: Date }>(true);
  return { when: x.at };
});
const vact = activity("vact", { input: v.object({ a: v.optional(v.string(), "x") }), output: v.number() }, async (x) => {
  is<typeof x, { a: string }>(true);
  return 1;
});
const aact = activity("aact", { input: type({ name: "string", "age?": "number" }), output: type("string") }, async (x) => x.name + (x.age ?? ""));
const zev = event("z", z.object({ a: z.string().default("x") }));
const zw = workflow("zw", { input: Z, output: z.object({ ok: z.boolean().default(true) }) }, async function* (x) {
  const r = yield* zact({ id: "1", at: "2020" });
  is<typeof r, { when: Date }>(true);
  const s = yield* vact({});
  is<typeof s, number>(true);
  const t = yield* aact({ name: "x" });
  is<typeof t, string>(true);
  const e = yield* awaitEvent(zev);
  is<typeof e, { a: string }>(true);
  if (x.n > 3) return yield* child(zw2, { id: "1", at: "2020" });
  return {};
});
const zw2 = workflow("zw2", { input: Z }, async function* () { return { ok: true }; });
{
  const o = out(zw);
  is<typeof o, { ok: boolean }>(true);
}

// 45 recursion
const FactIn = Type.Object({ n: Type.Number() });
// @ts-expect-error TS7022/7024 a recursive workflow needs an annotation
export const fact0 = workflow("fact0", { input: FactIn, output: Type.Number() }, async function* ({ n }) { return n < 2 ? 1 : n * (yield* child(fact0, { n: n - 1 })); });
const fact1 = workflow("fact1", { input: FactIn }, async function* ({ n }): Flow<number> { return n < 2 ? 1 : n * (yield* child(fact1, { n: n - 1 })); });
{
  const o = out(fact1);
  is<typeof o, number>(true);
}
// mutually recursive, annotated
const even = workflow("even", async function* (n: number): Flow<boolean> { return n === 0 ? true : yield* child(odd, n - 1); });
const odd = workflow("odd", async function* (n: number): Flow<boolean> { return n === 0 ? false : yield* child(even, n - 1); });
// contracts
const Tree = workflow.contract("tree", { version: "1.0.0", input: Type.Object({ depth: Type.Number() }), output: Type.Number() });
const Leaf = workflow.contract("leaf", { input: Type.Object({ depth: Type.Number() }), output: Type.Number() });
const tree = Tree.implement(async function* ({ depth }) {
  const [a, b] = yield* all([child(Leaf, { depth }), child(Tree, { depth: depth - 1 })]);
  return a + b;
});
const leaf = Leaf.implement(async function* ({ depth }) { return depth ? yield* child(Tree, { depth: 0 }) : 1; });
const renderIt = activity.contract("render", { input: Type.Object({ scene: Type.String() }), output: Type.Object({ url: Type.String() }) });
const render = renderIt.implement(async (i, ctx) => ({ url: i.scene + ctx.attempt }));
// @ts-expect-error 46 implementation that breaks the contract
renderIt.implement(async () => ({ url: 5 }));
// @ts-expect-error 46b implementation that breaks the contract of a workflow
Tree.implement(async function* () { return "5"; });
// recursive helpers
async function* walk(n: number): Flow<number> { return n ? (yield* score(n)) + (yield* walk(n - 1)) : 0; }

// 47 generic helpers
async function* twice<T>(make: () => Effect<T>): Flow<[T, T]> { return [yield* make(), yield* make()]; }
async function* fallback<I, O>(act: Activity<I, O>, input: I, or: O): Flow<O> { try { return yield* act(input); } catch { return or; } }
async function* inferred<T>(b: Effect<T>) { const x = yield* b; return { x }; }
async function* fan<I, O>(wf: Workflow<I, O>, inputs: I[]) { return yield* map(inputs, (i) => child(wf, i), { concurrency: 3 }); }
export async function* anyBranch<T>(b: Branch<T>) { return yield* timeout(b, "1s"); }
export async function* withLog<T>(ctx: WorkflowContext, f: () => Flow<T>): Flow<T> { ctx.log.info("x"); return yield* f(); }
export async function* helpers() {
  const a = yield* twice(() => score(1));
  is<typeof a, [number, number]>(true);
  const b = yield* fallback(score, 1, 0);
  is<typeof b, number>(true);
  const c = yield* inferred(reserve({ id: "1", total: 1 }));
  is<typeof c, { x: { reservation: string } }>(true);
  const d = yield* fan(hello, ["a"]);
  is<typeof d, string[]>(true);
  const f = yield* walk(3);
  is<typeof f, number>(true);
}
// helpers that take the context
async function* logged(ctx: WorkflowContext) { ctx.log.info(ctx.id); yield* sleep("1s"); }
interface Vars {
  a: number;
}
workflow("x", { input: Order, variables: (): Vars => ({ a: 1 }) }, async function* (_o, ctx) { yield* logged(ctx); ctx.variables.a++; });
workflow("x", async function* (_: string, ctx) { yield* logged(ctx); });

// 47c an untyped response, a workflow factory
const getJson = activity("get", async (url: string) => (await fetch(url)).json());
function crud<S extends TSchema>(name: string, schema: S) {
  return workflow(name, { input: schema }, async function* (_i) { yield* sleep("1s"); return name; });
}
const crudOrder = crud("crud", Order);
export async function* useCrud() {
  const r = yield* child(crudOrder, { id: "1", total: 1 });
  is<typeof r, string>(true);
  const j = yield* getJson("http://x");
  const k: unknown = j;
  void k;
}
// @ts-expect-error 47d sometimes returns an effect
workflow("x", async function* (n: number) { if (n) return score(1); return 5; });
// @ts-expect-error 47e one wrong yield among good ones, with schema and context
workflow("x", { input: Order }, async function* (o, ctx) { yield* sleep("1s"); yield o.total; return ctx.id; });

// 48 errors
export async function* errors() {
  try {
    yield* reserve({ id: "1", total: 1 });
  } catch (e) {
    if (e instanceof w.ActivityError) {
      const c: string = e.code;
      void [c, e.attempts, e.cause];
    }
    if (e instanceof TimeoutError) void e.timeout;
    throw e;
  }
  throw new RetryAfterError("busy", "10s", { cause: 1 });
}

const list: AnyWorkflow[] = [order, nightly, tree, leaf, even, odd, zw];
void [list, duration("1h"), render];

// ─── how often an activity runs, and the transaction of one that is transactional ───
{
  const debit = activity("debit", { semantics: "transactional", input: Order }, async (o, ctx) => {
    is<typeof ctx, w.TransactionalContext>(true);
    is<typeof ctx.tx, w.ActivityTransaction>(true);
    ctx.heartbeat();
    return o.total;
  });
  const d: Effect<number> = debit({ id: "1", total: 2 }).with({ id: "debit" });
  activity("debit", { semantics: "transactional" }, async (n: number, { tx, attempt }) => [n, tx, attempt]);
  activity.contract("debit", { semantics: "transactional", input: Order }).implement(async (_, ctx) => void ctx.tx);
  // @ts-expect-error no transaction without semantics
  activity("x", async (_: string, ctx) => ctx.tx);
  // @ts-expect-error no transaction at least once
  activity("x", { semantics: "atLeastOnce" }, async (_: string, ctx) => ctx.tx);
  // @ts-expect-error no transaction at most once
  activity("x", { semantics: "atMostOnce", input: Order }, async (_, ctx) => ctx.tx);
  // @ts-expect-error no transaction where the semantics is not known
  activity("x", { semantics: "atMostOnce" as w.Semantics }, async (_: string, ctx) => ctx.tx);
  // @ts-expect-error no transaction for a contract that is not transactional
  activity.contract("x", { input: Order }).implement(async (_, ctx) => void ctx.tx);
  // @ts-expect-error a call cannot make it transactional
  ping().with({ semantics: "transactional" });
  // @ts-expect-error nor can a step
  step("x", async () => 1, { semantics: "transactional" });
  void d;
}
