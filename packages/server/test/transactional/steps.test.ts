import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ActivityError, activity, all, type PayloadCodec, Type, type WovyrError, workflow } from "@wovyr/sdk";
import { eq } from "drizzle-orm";
import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/postgres-js";
import { createOrchestrator, memoryStore, pgliteStore, postgresStore } from "../../src/index.ts";
import { stage } from "./stage.ts";

const quick = { maxAttempts: 3, initialDelay: 1, jitter: "none" } as const;
const transactional = { semantics: "transactional", retry: quick } as const;

function causeOf(error: unknown): WovyrError {
  assert.ok(error instanceof ActivityError);
  return error.cause as WovyrError;
}

test("what a transactional activity writes and what it returns become durable together", async (context) => {
  const { host, notes, outcomes } = await stage(context);
  const write = activity("write", { ...transactional, input: Type.String(), output: Type.Number() }, async (note, ctx) => {
    const rows = await ctx.tx`insert into ledger (note) values (${note}) returning note`;
    return rows.length;
  });
  const writer = workflow("writer", async function* () {
    const first = yield* write("a");
    return first + (yield* write("b"));
  });
  const { client } = await host([writer]);
  const run = await client.start(writer);
  assert.equal(await run.result(), 2);
  assert.deepEqual(await notes(), ["a", "b"]);
  assert.ok((await outcomes(run.runId)).every((outcome) => outcome !== null));
  assert.equal((await outcomes(run.runId)).length, 2);
});

test("nothing of an attempt that fails is there, and the next one works", async (context) => {
  const { host, notes, outcomes } = await stage(context);
  const write = activity("write", transactional, async (_: undefined, { tx, attempt }) => {
    await tx`insert into ledger (note) values (${`attempt ${attempt}`})`;
    if (attempt < 3) throw new Error("not yet");
    return attempt;
  });
  const writer = workflow("writer", async function* () {
    return yield* write(undefined);
  });
  const { client } = await host([writer]);
  const run = await client.start(writer);
  assert.equal(await run.result(), 3);
  assert.deepEqual(await notes(), ["attempt 3"]);
  assert.equal((await outcomes(run.runId)).length, 1);
});

test("an output that does not fit, or is too large, rolls back what was written", async (context) => {
  const { host, notes, outcomes } = await stage(context);
  const write = activity("write", { ...transactional, output: Type.Number() }, async (text: string, ctx) => {
    await ctx.tx`insert into ledger (note) values (${text})`;
    return text as unknown as number;
  });
  const large = activity("large", transactional, async (_: undefined, ctx) => {
    await ctx.tx`insert into ledger (note) values ('large')`;
    return "x".repeat(2_000);
  });
  const writer = workflow("writer", async function* () {
    const codes: string[] = [];
    for (const branch of [write("a"), large(undefined)])
      try {
        yield* branch;
      } catch (error) {
        codes.push(causeOf(error).code);
      }
    return codes;
  });
  const { client } = await host([writer], { limits: { payload: 1_000 } });
  const run = await client.start(writer);
  assert.deepEqual(await run.result(), ["INVALID_OUTPUT", "PAYLOAD_TOO_LARGE"]);
  assert.deepEqual(await notes(), []);
  assert.deepEqual(await outcomes(run.runId), [null, null], "what failed for good is given up");
});

test("serialization failures and deadlocks are tried again, and each of two that deadlock is done once", async (context) => {
  const { host, notes, admin } = await stage(context);
  await admin`insert into accounts values ('a', 0), ('b', 0)`;
  let met = 0;
  let meet = () => {};
  const both = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const cross = activity("cross", transactional, async ([first, second]: [string, string], { tx, attempt }) => {
    await tx`update accounts set balance = balance + 1 where name = ${first}`;
    if (attempt === 1) met += 1;
    if (met === 2) meet();
    await both;
    await tx`update accounts set balance = balance + 1 where name = ${second}`;
    await tx`insert into ledger (note) values (${first + second})`;
  });
  const raising = activity("raising", transactional, async (_: undefined, { tx, attempt }) => {
    if (attempt === 1) await tx.unsafe("do $$ begin raise exception 'try again' using errcode = '40001'; end $$");
    await tx`insert into ledger (note) values ('raised')`;
  });
  const crossing = workflow("crossing", async function* () {
    yield* all([cross(["a", "b"]), cross(["b", "a"]), raising(undefined)]);
  });
  const { client } = await host([crossing]);
  await (await client.start(crossing)).result();
  assert.deepEqual(await notes(), ["ab", "ba", "raised"]);
  assert.deepEqual([...(await admin`select balance from accounts`)], [{ balance: 2 }, { balance: 2 }]);
});

test("H091 a statement that failed and was caught fails the activity with a clear error, unless it failed in a savepoint", async (context) => {
  const { host, notes, admin } = await stage(context);
  await admin`insert into accounts values ('a', 0)`;
  const insert = activity("insert", transactional, async (safely: boolean, { tx }) => {
    await tx`insert into ledger (note) values ('before')`;
    const twice = () => tx`insert into accounts values ('a', 1)`;
    await (safely ? tx.savepoint((inner) => inner`insert into accounts values ('a', 1)`) : twice()).catch(() => {});
    return 5;
  });
  const inserter = workflow("inserter", async function* (safely: boolean) {
    try {
      return yield* insert(safely);
    } catch (error) {
      return causeOf(error).code;
    }
  });
  const { client } = await host([inserter]);
  assert.equal(await (await client.start(inserter, false)).result(), "TRANSACTION_ABORTED");
  assert.deepEqual(await notes(), []);
  assert.equal(await (await client.start(inserter, true)).result(), 5);
  assert.deepEqual(await notes(), ["before"]);
});

test("a function that ends its transaction, or uses it after its end, is told so", async (context) => {
  const { host, outcomes } = await stage(context);
  let kept: (() => unknown) | undefined;
  const commit = activity("commit", transactional, async (_: undefined, { tx }) => {
    await tx`commit`;
  });
  const keep = activity("keep", transactional, async (_: undefined, { tx }) => {
    kept = () => tx`select 1`;
    await assert.rejects(async () => tx.end(), { code: "INVALID_OPTION" });
  });
  const misuse = workflow("misuse", async function* () {
    yield* keep(undefined);
    try {
      yield* commit(undefined);
    } catch (error) {
      return causeOf(error).code;
    }
    return "";
  });
  const { client } = await host([misuse]);
  const run = await client.start(misuse);
  assert.equal(await run.result(), "TRANSACTION_ENDED");
  assert.throws(() => kept?.(), { code: "TRANSACTION_ENDED" });
  assert.equal((await outcomes(run.runId))[1], null);
});

test("drizzle works on the transaction, nested ones too, and leaves the types of later ones alone", async (context) => {
  const { host, admin } = await stage(context);
  await admin`create table entries (note text primary key, at timestamptz not null default now(), tags text[])`;
  const entries = pgTable("entries", {
    note: text().primaryKey(),
    at: timestamp({ withTimezone: true }).defaultNow(),
    tags: text().array(),
  });
  const write = activity("write", transactional, async (note: string, ctx) => {
    const db = drizzle(ctx.tx);
    await db.insert(entries).values({ note, tags: ["x", "y"] });
    await db
      .transaction(async (nested) => {
        await nested.insert(entries).values({ note: `${note}, undone` });
        nested.rollback();
      })
      .catch(() => {});
    const [row] = await db.select().from(entries).where(eq(entries.note, note));
    return row?.at instanceof Date && row.tags?.length === 2;
  });
  const plain = activity("plain", transactional, async (_: undefined, { tx }) => {
    const [row] = await tx`select at, tags from entries`;
    return row?.at instanceof Date && row.tags.length === 2;
  });
  const writer = workflow("writer", async function* () {
    return [yield* write("first"), yield* plain(undefined)];
  });
  const { client } = await host([writer], { store: { transactions: { max: 1 } } });
  assert.deepEqual(await (await client.start(writer)).result(), [true, true]);
  assert.deepEqual([...(await admin`select note from entries`)], [{ note: "first" }]);
});

test("no more transactions are open than the store has connections for them; the others wait", async (context) => {
  const { host, admin, notes } = await stage(context);
  let most = 0;
  const write = activity("write", transactional, async (note: string, { tx }) => {
    await tx`insert into ledger (note) values (${note})`;
    const [row] =
      await admin`select count(*)::int as open from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`;
    most = Math.max(most, row?.open);
  });
  const writer = workflow("writer", async function* () {
    yield* all(Array.from({ length: 12 }, (_, index) => write(`${index}`)));
  });
  const { client } = await host([writer], { store: { transactions: { max: 3 } } });
  await (await client.start(writer)).result();
  assert.equal((await notes()).length, 12);
  assert.ok(most > 1 && most <= 3, `${most} were open at once`);
});

test("an outcome passes through the codec, and one that is found is what the activity came to", async (context) => {
  const { host, admin, notes, outcomes } = await stage(context);
  const codec: PayloadCodec = { name: "reversed", encode: (text) => reversed(text), decode: (text) => reversed(text) };
  let called = 0;
  const write = activity("write", transactional, async (_: undefined, { tx }) => {
    called += 1;
    await tx`insert into ledger (note) values ('once')`;
    return "written";
  });
  const prepare = activity("prepare", async (runs: [string, string]) => {
    await admin`insert into wovyr.step_outcomes (tenant, run, effect, at, outcome)
      select tenant, ${runs[1]}, '1', at, outcome from wovyr.step_outcomes where run = ${runs[0]}`;
  });
  const first = workflow("first", async function* () {
    return yield* write(undefined);
  });
  const second = workflow("second", async function* (run: string, ctx) {
    yield* prepare([run, ctx.runId]);
    return yield* write(undefined);
  });
  const { client } = await host([first, second], { codec });
  const one = await client.start(first);
  assert.equal(await one.result(), "written");
  assert.ok((await outcomes(one.runId))[0]?.includes("nettirw"));
  assert.equal(await (await client.start(second, one.runId)).result(), "written");
  assert.deepEqual([called, await notes()], [1, ["once"]]);
});

test("an attempt that finds a tombstone is refused, and its function is not called", async (context) => {
  const { host, admin, notes } = await stage(context);
  const write = activity("write", transactional, async (_: undefined, { tx }) => {
    await tx`insert into ledger (note) values ('never')`;
  });
  const bury = activity("bury", async (run: string) => {
    await admin`insert into wovyr.step_outcomes (tenant, run, effect, at) values ('default', ${run}, '1', 1)`;
  });
  const late = workflow("late", async function* (_: undefined, ctx) {
    yield* bury(ctx.runId);
    try {
      yield* write(undefined);
    } catch (error) {
      return causeOf(error).code;
    }
    return "";
  });
  const { client } = await host([late]);
  assert.equal(await (await client.start(late)).result(), "STEP_GIVEN_UP");
  assert.deepEqual(await notes(), []);
});

test("H086 a transaction that stands idle too long is ended by the database, nothing is written outside of it, and the attempt is made again", async (context) => {
  const { host, notes } = await stage(context);
  const write = activity("write", transactional, async (_: undefined, { tx, attempt, signal }) => {
    await tx`insert into ledger (note) values (${`attempt ${attempt}`})`;
    if (attempt === 1) await pause(1_500, undefined, { signal }).catch(() => {});
    await tx`select 1`;
  });
  const writer = workflow("writer", async function* () {
    yield* write(undefined);
  });
  const { client } = await host([writer], { store: { transactions: { idleTimeout: 200 } } });
  await (await client.start(writer)).result();
  assert.deepEqual(await notes(), ["attempt 2"]);
});

test("outcomes of runs that are gone are removed when the engine keeps house", async (context) => {
  const { host, admin } = await stage(context);
  const idle = workflow("idle", async function* () {});
  await (await host([idle])).close();
  await admin`insert into wovyr.step_outcomes (tenant, run, effect, at, outcome) values ('default', 'gone', '1', 1, '1')`;
  await host([idle]);
  const patience = performance.now() + 10_000;
  while (performance.now() < patience && (await admin`select from wovyr.step_outcomes`).length > 0) await pause(20);
  assert.equal((await admin`select from wovyr.step_outcomes`).length, 0);
});

for (const [name, provider] of [
  ["memory", () => memoryStore()],
  ["pglite", (directory: string) => pgliteStore(directory)],
] as const)
  test(`a store without transactions to give (${name}) says so when the activity is called`, async () => {
    const directory = mkdtempSync(join(tmpdir(), "wovyr-transactional-"));
    let called = false;
    const write = activity("write", transactional, async () => {
      called = true;
    });
    const writer = workflow("writer", async function* () {
      try {
        yield* write(undefined);
      } catch (error) {
        const { code, message } = causeOf(error);
        return { code, message, attempts: (error as ActivityError).attempts };
      }
      return undefined;
    });
    const orchestrator = await createOrchestrator({ workflows: [writer], store: provider(join(directory, "store")) });
    try {
      const told = await (await orchestrator.client.start(writer)).result();
      assert.equal(told?.code, "TRANSACTIONS_UNSUPPORTED");
      assert.match(told?.message ?? "", new RegExp(`"write".*\\(${name}\\).*postgresStore`));
      assert.deepEqual([told?.attempts, called], [1, false]);
    } finally {
      await orchestrator.close();
      rmSync(directory, { recursive: true, force: true });
    }
  });

test("options that make no sense are refused", () => {
  const url = "postgres://127.0.0.1/none";
  assert.throws(() => postgresStore(url, { transactions: { max: 0 } }), { code: "INVALID_OPTION" });
  assert.throws(() => postgresStore(url, { transactions: { idleTimeout: 0.5 } }), { code: "INVALID_OPTION" });
  const plain = activity("plain", async () => {});
  const write = activity("write", transactional, async () => {});
  assert.throws(() => plain(undefined).with({ semantics: "transactional" as never }), {
    code: "INVALID_OPTION",
    message: /plain.*is not transactional/,
  });
  assert.throws(() => write(undefined).with({ semantics: "atMostOnce" }), { code: "INVALID_OPTION", message: /write.*is transactional/ });
});

const reversed = (text: string) => [...text].reverse().join("");
