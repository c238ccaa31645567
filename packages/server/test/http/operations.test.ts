/** Pauses, forks, resets, exports, imports, removals and batches: over HTTP and in the orchestrator's own process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { awaitEvent, event, Type, WovyrError, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";
import { until } from "../recovery/until.ts";

const Word = event("word", Type.Object({ text: Type.String(), at: Type.Date() }));
const words = workflow("words", { input: Type.Number(), events: [Word] }, async function* (count) {
  const heard: string[] = [];
  while (heard.length < count) heard.push((yield* awaitEvent(Word)).text);
  return heard.join(" ");
});

let orchestrator: Orchestrator;
let url: string;
before(async () => {
  orchestrator = await createOrchestrator({ workflows: [words], store: memoryStore() });
  url = await orchestrator.listen({ port: 0 });
});
after(() => orchestrator.close());

const code = (wanted: string) => (error: unknown) => error instanceof WovyrError && error.code === wanted;
const word = (text: string) => ({ text, at: new Date(0) });
const ways: readonly (readonly [string, () => Client])[] = [
  ["over-HTTP", () => createClient({ url })],
  ["in-process", () => orchestrator.client],
];

for (const [way, client] of ways) {
  test(`a run is paused, resumed, forked, reset and removed ${way}`, async () => {
    const run = await client().start(words, 2, { id: `words-${way}` });
    await run.pause({ reason: "wait" });
    const { status, paused } = await run.describe();
    assert.deepEqual([status, paused?.reason, paused?.at instanceof Date], ["Paused", "wait", true]);
    await run.send(Word, word("a"));
    await run.resume();
    await until("the word is heard", async () => (await run.describe()).historyLength > 6);
    const fork = await run.fork({ at: "last", id: `fork-${way}` });
    await fork.send(Word, word("b"));
    assert.equal(await fork.result(), "a b");
    assert.deepEqual((await fork.describe()).forkedFrom?.id, run.id);
    const anew = await run.fork({ input: 1 });
    await anew.send(Word, word("c"));
    assert.equal(await anew.result(), "c");
    const next = await run.reset({ to: "first", reason: "again" });
    assert.deepEqual([next.id, next.runId === run.runId], [run.id, false]);
    await next.send(Word, word("d"));
    assert.equal(await run.result(), "a d");
    await assert.rejects(next.fork({ at: 1, input: 3 }), code("INVALID_OPTION"));
    await assert.rejects(next.fork({ at: 1_000 }), code("NOT_A_BORDER"));
    await assert.rejects(next.fork({ input: "x" }), code("INVALID_INPUT"));
    assert.equal(await client().handle(run.id).delete({ runId: run.runId }), 1);
    assert.equal(await client().handle(run.id).delete(), 1);
    await assert.rejects(client().handle(run.id).describe(), code("INSTANCE_NOT_FOUND"));
    const open = await client().start(words, 1);
    await assert.rejects(open.delete(), code("INSTANCE_OPEN"));
    await open.terminate();
  });

  test(`a run is exported and imported ${way}`, async () => {
    const run = await client().start(words, 2, { id: `moved-${way}` });
    await run.send(Word, word("\u00e4\u2028\n"));
    await run.pause();
    await run.send(Word, word("b"));
    const lines: string[] = [];
    for await (const line of run.export()) lines.push(line);
    await assert.rejects(client().import(lines), code("RUN_EXISTS"));
    await assert.rejects(client().import(lines.slice(0, -3)), code("INVALID_EXPORT"));
    await run.terminate();
    await run.delete();
    const [imported] = await client().import(lines);
    assert.deepEqual(imported, { id: run.id, runId: run.runId, status: "Paused" });
    await run.resume();
    assert.equal(await run.result(), "\u00e4\u2028\n b");
    await assert.rejects(client().handle("nobody").export()[Symbol.asyncIterator]().next(), code("INSTANCE_NOT_FOUND"));
  });

  test(`a batch does something to all that a filter finds ${way}`, async () => {
    const attributes = { batch: way };
    const runs = await Promise.all([1, 2, 3].map(() => client().start(words, 1, { attributes })));
    const { batches } = client();
    const since = new Date(Date.now() - 60_000);
    const id = await batches.start({
      operation: { type: "send", event: Word, payload: word("all") },
      filter: { workflow: words, attributes, status: "Waiting", startedAfter: since },
    });
    await until("the batch is done", async () => (await batches.get(id)).closedAt !== undefined);
    const { status, done, failed, total, filter, startedAt } = await batches.get(id);
    assert.deepEqual({ status, done, failed, total }, { status: "Completed", done: 3, failed: 0, total: 3 });
    assert.deepEqual(filter, { workflow: "words", attributes, statuses: ["Waiting"], startedAfter: since });
    assert.ok(startedAt instanceof Date);
    for (const run of runs) assert.equal(await run.result(), "all");
    await assert.rejects(batches.get("nobody"), code("BATCH_NOT_FOUND"));
    await assert.rejects(batches.cancel(id), code("INSTANCE_CLOSED"));
    await assert.rejects(batches.start({ operation: { type: "explode" } as never, filter: {} }), (error) => error instanceof WovyrError);
  });
}

test("what begins another run says where it is, and says so again for the same key", async () => {
  const run = await orchestrator.client.start(words, 1, { id: "keyed" });
  const ask = (path: string, body: object) =>
    fetch(`${url}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "k-1" },
      body: JSON.stringify(body),
    });
  for (const [path, body, status, place] of [
    ["instances/keyed/fork", { id: "keyed-fork" }, 201, "/v1/instances/"],
    ["instances/keyed/reset", { to: "last", runId: run.runId }, 201, "/v1/instances/"],
    ["batches", { operation: { type: "wake" }, filter: { workflow: "none" } }, 202, "/v1/batches/"],
  ] as const) {
    const [first, second] = [await ask(path, body), await ask(path, body)];
    assert.deepEqual([first.status, second.status], [status, status], path);
    const answer = (await first.json()) as { id: string };
    assert.deepEqual(await second.json(), answer, path);
    assert.equal(first.headers.get("location"), `${place}${answer.id}`);
    assert.deepEqual(
      [first, second].map(({ headers }) => headers.get("idempotency-replayed")),
      [null, "true"],
      path,
    );
  }
});

test("lines of another type, and too many of them, are refused", async () => {
  const send = (type: string, body: string) =>
    fetch(`${url}/v1/instances/import`, { method: "POST", headers: { "content-type": type }, body });
  assert.equal((await send("application/json", "{}")).status, 415);
  assert.equal((await send("application/x-ndjson", "")).status, 400);
  assert.equal((await send("application/x-ndjson", " ".repeat(64 * 1024 * 1024 + 1))).status, 413);
});
