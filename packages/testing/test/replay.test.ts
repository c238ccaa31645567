import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { type AnyWorkflow, activity, all, awaitEvent, child, event, race, sideEffect, sleep, step, workflow } from "@wovyr/sdk";
import { createClient } from "@wovyr/sdk/client";
import { type HistoryEvent, rememberSites, sitesAreRemembered } from "@wovyr/sdk/internal";
import { createOrchestrator, memoryStore } from "@wovyr/server";
import { assertReplays, createTestEnvironment, replay, saveHistory } from "@wovyr/testing";
import { long } from "./support/replay-folder.ts";

const clean = (count = 1) => `${count} ${count === 1 ? "history" : "histories"} checked: all replay.`;

const when = activity("when", async (at: Date) => new Map([["at", at]]));
const fails = activity("fails", { retry: { maxAttempts: 2, initialDelay: "1s" } }, async () => {
  throw new RangeError("no");
});
const go = event("go");
const sub = workflow("sub", async function* (n: number) {
  yield* sleep("1s");
  return n * 2;
});
let drawn = 0;
const rich = workflow("rich", async function* (input: { since: Date }, ctx) {
  const map = yield* when(input.since);
  const value = yield* sideEffect(() => {
    drawn += 1;
    return { drawn, at: map.get("at") };
  });
  const n = yield* child(sub, Math.floor(ctx.random() * 100));
  const { winner } = yield* race({ late: sleep("1h"), go: awaitEvent(go, { timeout: "2 days" }) });
  yield* step("noted", async () => [ctx.runId, ctx.uuid(), value.drawn]);
  ctx.variables.n = n;
  try {
    yield* all([fails(), sleep("10s")]);
  } catch (error) {
    if (winner === "late") throw error;
  }
  yield* awaitEvent(go);
  return ctx.now();
});
const simple = workflow("simple", async function* (n: number) {
  return yield* step("one", async () => n);
});

const workflows = [rich, sub, simple];
const newEnvironment = () => createTestEnvironment({ workflows });

/** What `work` is given is gone when it has ended. */
async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "wovyr-replay-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function historyOf<I>(flow: AnyWorkflow & { readonly name: string }, input: I): Promise<HistoryEvent[]> {
  await using env = await newEnvironment();
  const run = await env.start(flow as never, input as never);
  await env.advance("1 day");
  return env.history(run.id);
}

test("unchanged code replays: runs that are open, closed, failed, cancelled, terminated and children, and nothing of them is executed", async () => {
  await using env = await newEnvironment();
  const since = new Date("2020-02-02T00:00:00Z");
  const [open, closed, failed, cancelled, terminated] = await Promise.all(
    ["open", "closed", "failed", "cancelled", "terminated"].map((id) => env.start(rich, { since }, { id })),
  );
  await env.advance("1m");
  for (const run of [open, closed, cancelled, terminated]) await run?.send(go);
  await env.advance("2h");
  await closed?.send(go);
  await cancelled?.cancel();
  await terminated?.terminate({ reason: "enough" });
  await env.advance("1h");
  const statuses: string[] = [];
  const before = drawn;
  for await (const { id, runId, status } of env.client.list()) {
    statuses.push(status);
    const events = await env.history(id);
    for (let length = 1; length <= events.length; length++) {
      if (events[length] !== undefined && events[length]?.turn !== events[length]?.seq) continue;
      const { text } = await replay(workflows, events.slice(0, length), { runId });
      assert.equal(text, clean(), `${id} ${length}`);
    }
  }
  assert.deepEqual([...new Set(statuses)].sort(), ["Cancelled", "Completed", "Failed", "Terminated", "Waiting"]);
  assert.equal((await env.state(failed?.id ?? "")).status, "Failed");
  assert.equal(drawn, before);
});

test("a saved history keeps its types, and the run that it is of", async () => {
  await inFolder(async (folder) => {
    await using env = await newEnvironment();
    const run = await env.start(rich, { since: new Date(0) });
    await env.advance("1 day");
    await saveHistory(join(folder, "deep/er/by-handle.json"), run);
    await saveHistory(join(folder, "by-events.json"), await env.history(run.id), { runId: run.runId });
    await saveHistory(join(folder, "by-events.jsonl"), await env.history(run.id));
    const report = await replay(workflows, folder);
    assert.equal(report.text, clean(3));
    assert.deepEqual(
      report.runs.map(({ source, runId }) => [source.slice(folder.length + 1), runId]),
      [
        ["by-events.json", run.runId],
        ["by-events.jsonl", undefined],
        ["deep/er/by-handle.json", run.runId],
      ],
    );
  });
});

test("the lines of an export are a history: of a run as it began, and of one that was forked; those of several runs are refused", async () => {
  await inFolder(async (folder) => {
    await using env = await newEnvironment();
    const run = await env.start(rich, { since: new Date(0) }, { id: "origin" });
    await env.advance("1 day");
    const fork = await run.fork({ at: "first" });
    await env.advance("1 day");
    const exported = async (handle: typeof run) => {
      const lines: string[] = [];
      for await (const line of handle.export()) lines.push(line);
      return lines.join("\n");
    };
    const [one, other] = [await exported(run), await exported(fork)];
    await writeFile(join(folder, "one.ndjson"), one);
    await writeFile(join(folder, "other.jsonl"), `${other}\n`);
    const report = await replay(workflows, folder);
    assert.equal(report.text, clean(2));
    assert.deepEqual(
      report.runs.map(({ runId }) => runId),
      [run.runId, fork.runId],
    );
    assert.ok((await env.history(fork.id)).some(({ type }) => type === "Forked"));
    await writeFile(join(folder, "both.ndjson"), `${one}\n${other}`);
    assert.match((await replay(workflows, join(folder, "both.ndjson"))).text, /several runs/);
    await writeFile(join(folder, "cut.ndjson"), one.slice(0, one.lastIndexOf("\n")));
    assert.match((await replay(workflows, join(folder, "cut.ndjson"))).text, /line 1 .*is the end missing/);
  });
});

test("a folder is checked as a whole: a file that is no history is an entry with its reason", async () => {
  await inFolder(async (folder) => {
    const events = await historyOf(simple, 1);
    const plain = JSON.stringify(events);
    const files: Record<string, [text: string, reason: RegExp | undefined]> = {
      "good.json": [plain, undefined],
      "good.jsonl": [events.map((one) => JSON.stringify(one)).join("\n"), undefined],
      "page.json": [JSON.stringify({ runId: "r1", items: events }), undefined],
      "sub/good.json": [plain, undefined],
      "cut.json": [plain.slice(0, 100), /cannot be read: .*JSON/],
      "empty.json": ["", /cannot be read/],
      "none.json": ["[]", /it holds no event/],
      "other.json": ['{ "name": "wovyr" }', /neither an array of events nor a page/],
      "text.json": ['"hello"', /neither an array/],
      "null.json": ["[null]", /item 0 is no event/],
      "late.json": [JSON.stringify(events.slice(1)), /a history begins at 1/],
      "half.json": [
        JSON.stringify({ runId: "r1", items: events, nextSeq: 501 }),
        /one page of a longer history, which goes on at event 501/,
      ],
      "kind.json": [plain.replace("ActivityCompleted", "Surprise"), /type "Surprise", which this version of Wovyr does not know/],
      "field.json": [plain.replace('"effect"', '"affect"'), /event 2 \(ActivityScheduled\) has no proper `effect`/],
      "twice.json": [plain.replaceAll('"InstanceCompleted"', '"Resumed"'), undefined],
      "contradiction.json": [plain.replaceAll('"ActivityScheduled"', '"ActivityCompleted"'), /no proper `attempt`/],
      "impossible.json": [JSON.stringify([events[0], { ...events[2], seq: 2, turn: 2 }]), /its events contradict each other/],
      "line.jsonl": [`${JSON.stringify(events[0])}\n{`, /cannot be read/],
    };
    await mkdir(join(folder, "sub"));
    for (const [name, [text]] of Object.entries(files)) await writeFile(join(folder, name), text);
    await writeFile(join(folder, "notes.txt"), "no history, and none meant");
    const report = await replay(simple, folder);
    assert.equal(report.runs.length, Object.keys(files).length);
    assert.equal(report.ok, false);
    for (const [name, [, reason]] of Object.entries(files)) {
      const run = report.runs.find(({ source }) => source === join(folder, name));
      if (reason === undefined) assert.ok(run !== undefined, name);
      else assert.match(run?.problem?.message ?? "", reason, name);
      if (reason !== undefined) assert.ok(report.text.includes(join(folder, name)), name);
    }
    for (const name of ["good.json", "good.jsonl", "page.json", "sub/good.json"])
      assert.equal((await replay(simple, join(folder, name))).text, clean(), name);
  });
});

test("a path that leads nowhere and a folder without histories are problems, and not nothing to do", async () => {
  await inFolder(async (folder) => {
    assert.match((await replay(simple, join(folder, "nothing"))).text, /could not be replayed[\s\S]*This path cannot be read: ENOENT/);
    const report = await replay(simple, folder);
    assert.match(report.text, /This folder holds no history/);
    assert.equal(report.ok, false);
  });
});

test("each history is checked by its own workflow and version, and one of another is told", async () => {
  await inFolder(async (folder) => {
    const other = workflow("simple", { version: "2" }, async function* (n: number) {
      return yield* step("two", async () => n);
    });
    await using env = await createTestEnvironment({ workflows: [simple, other, sub] });
    for (const [name, flow, version] of [
      ["a", simple, "1"],
      ["b", simple, "2"],
      ["c", sub, "1"],
    ] as const) {
      const run = await env.start(flow, 1, { version });
      await env.advance("1m");
      await saveHistory(join(folder, `${name}.json`), run);
    }
    assert.equal((await replay([simple, other, sub], folder)).text, clean(3));
    const [a, b, c] = (await replay(simple, folder)).runs;
    assert.equal(a?.problem ?? a?.divergence, undefined);
    assert.match(b?.problem?.message ?? "", /a run of version "2" of workflow "simple", and only "1" is checked/);
    assert.match(c?.problem?.message ?? "", /a run of workflow "sub", which is not among those that are checked \(simple\)/);
  });
});

test("the instances of a running orchestrator are checked over HTTP, by query and up to a limit", async () => {
  await using orchestrator = await createOrchestrator({ workflows, store: memoryStore() });
  const client = createClient({ url: await orchestrator.listen({ port: 0 }) });
  for (let n = 0; n < 5; n++) await client.execute(simple, n, { id: n < 2 ? "again" : `simple-${n}` });
  await client.start(rich, { since: new Date() }, { id: "waits" });
  await client.start(sub, 1, { id: "naps" });
  const changed = workflow("simple", async function* (n: number) {
    return yield* step("other", async () => n);
  });

  const all = await replay(workflows, { client });
  assert.equal(all.ok, true, all.text);
  assert.match(all.text, /^7 histories checked: all replay. 1 instance left unread/);
  assert.equal(all.runs.find(({ skipped }) => skipped !== undefined)?.id, "again");

  const one = await replay(changed, { client });
  assert.equal(one.divergences.length, 4);
  assert.match(one.text, /4 histories checked: 4 do not replay[\s\S]*and 3 others alike: simple-3, simple-2, again/);
  assert.equal((await replay(changed, { client, query: { status: ["Running", "Waiting"] } })).ok, true);
  assert.equal((await replay([changed, rich, sub], { client, query: { workflow: "rich" } })).text, clean());

  const some = await replay(workflows, { client, limit: 2 });
  assert.equal(some.runs.length, 2);
  assert.match(some.text, /Only the newest 2 instances were checked, and there are more/);
  assert.equal((await replay(workflows, { client, query: { workflow: simple }, limit: 5 })).text.includes("Only"), false);
});

test("an await of what is no effect is a problem with its line", async () => {
  const fetching = workflow("simple", async function* (n: number) {
    yield* step("one", async () => n);
    await new Promise((resolve) => setImmediate(resolve));
    return n;
  });
  const report = await replay(fetching, await historyOf(simple, 1));
  assert.equal(report.ok, false);
  assert.match(report.runs[0]?.problem?.at ?? "", /replay\.test\.ts:\d+:\d+$/);
  assert.match(report.text, /awaited something that is no effect[\s\S]*replay\.test\.ts:/);
});

test("assertReplays throws what the report says", async () => {
  const events = await historyOf(simple, 1);
  await assertReplays(simple, events);
  const changed = workflow("simple", async function* (n: number) {
    return yield* step("other", async () => n);
  });
  const { text } = await replay(changed, events);
  await assert.rejects(assertReplays(changed, events), (error: Error) => {
    assert.equal(error.message, text);
    assert.equal(error.name, "AssertionError");
    return true;
  });
});

test("lines are told where effects do not remember them, and the process is left as it was", async () => {
  const changed = workflow("simple", async function* (n: number) {
    return yield* step("other", async () => n);
  });
  const events = await historyOf(simple, 1);
  const before = sitesAreRemembered();
  try {
    for (const remembered of [false, true]) {
      rememberSites(remembered);
      const seen: boolean[] = [];
      const watch = setInterval(() => seen.push(sitesAreRemembered()), 0);
      const { divergences } = await replay(changed, events);
      clearInterval(watch);
      assert.match(divergences[0]?.divergence.at ?? "", /replay\.test\.ts:\d+:\d+$/);
      assert.equal(sitesAreRemembered(), remembered);
      assert.ok(seen.every((now) => now === remembered));
    }
  } finally {
    rememberSites(before);
  }
});

test("a side effect is never called, not even by code that has changed", async () => {
  let called = 0;
  const draw = (then: string) =>
    workflow("draw", async function* () {
      const first = yield* sideEffect(() => ++called);
      yield* step(then, async () => {});
      const second = yield* sideEffect(() => ++called);
      yield* step("last", async () => {});
      const third = then === "one" ? 0 : yield* sideEffect(() => ++called);
      return first + second + third;
    });
  await using env = await createTestEnvironment({ workflows: [draw("one")] });
  const run = await env.start(draw("one"));
  await run.result();
  const report = await replay(draw("two"), await env.history(run.id));
  assert.equal(called, 2);
  const { diff } = report.divergences[0]?.divergence ?? {};
  assert.equal(
    `\n${diff}`,
    `\n  side effect\n- step one`.replace("step", "activity") +
      "\n+ activity two\n  side effect\n  activity last\n+ side effect\n  … history goes on with end (completed)\n  (as if done, for history holds no outcome: activity two)",
  );
});

test("a loop that asks for ever is shown up to a bound", async () => {
  const loop = (kind: string) =>
    workflow("loop", async function* () {
      for (let round = 0; round < 3_000; round++) yield* step(round < 1_000 ? "poll" : kind, async () => round);
    });
  await using env = await createTestEnvironment({ workflows: [loop("poll")] });
  const run = await env.start(loop("poll"));
  await run.result();
  const report = await replay(loop("peek"), await env.history(run.id));
  const { diff, seq } = report.divergences[0]?.divergence ?? { diff: "" };
  assert.equal(seq, 2_003 - 1);
  assert.ok(diff.split("\n").length < 60, diff);
});

test("a thousand histories are checked in a heap that cannot hold them, and in bounded time", async () => {
  await inFolder(async (folder) => {
    await using env = await createTestEnvironment({ workflows: [long] });
    const run = await env.start(long);
    await run.result();
    const events = await env.history(run.id);
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => saveHistory(join(folder, `${n % 10}/${n}.json`), events)));
    const bytes = 1_000 * JSON.stringify(events).length;
    const heapMegabytes = 64;
    assert.ok(bytes > heapMegabytes * 1024 * 1024);
    const began = performance.now();
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--max-old-space-size=${heapMegabytes}`,
      ...process.execArgv.filter((option) => !option.startsWith("--test")),
      join(import.meta.dirname, "support/replay-folder.ts"),
      folder,
    ]);
    const took = performance.now() - began;
    assert.equal(stdout.trim(), "1,000 histories checked: all replay.");
    assert.ok(took < 30_000, `${took} ms`);
  });
});

test("arguments that are none are refused by name", async () => {
  await assert.rejects(replay([], []), /at least one workflow/);
  await assert.rejects(replay({} as never, []), /definition 0 given to replay is not what `workflow\(…\)` returned/);
  await assert.rejects(replay(workflow.contract("c", {}), []), /a contract without an implementation/);
  await assert.rejects(replay(simple, 5 as never), /the events of a run, the path of a file or folder/);
  await assert.rejects(replay(simple, [], { run: 1 } as never), /has no option "run"/);
  assert.match((await replay(simple, [])).text, /it holds no event/);
});
