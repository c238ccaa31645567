/** Dead letters over HTTP: listed page by page, told in whole, decided on once. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { activity, Type, workflow } from "@wovyr/sdk";
import { type Client, createClient, type DeadLetterSummary } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";

const charge = activity("charge", { onExhausted: "pause", output: Type.String(), retry: { maxAttempts: 1 } }, async (_: { id: bigint }) => {
  throw Object.assign(new Error("the bank is closed", { cause: new TypeError("503") }), { code: "BANK_CLOSED" });
});
const pay = workflow("pay", async function* (id: number) {
  return yield* charge({ id: BigInt(id) });
});

let orchestrator: Orchestrator;
let url: string;
let client: Client;
before(async () => {
  orchestrator = await createOrchestrator({
    workflows: [pay],
    store: memoryStore(),
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  url = await orchestrator.listen({ port: 0 });
  client = createClient({ url });
});
after(() => orchestrator.close());

async function paused(count: number): Promise<DeadLetterSummary[]> {
  const ids = Array.from({ length: count }, (_, index) => `${Math.random()}`.slice(2) + index);
  for (const id of ids) await client.start(pay, 7, { id });
  for (;;) {
    const found: DeadLetterSummary[] = [];
    for await (const letter of client.deadLetters.list({ workflow: pay })) if (ids.includes(letter.instanceId)) found.push(letter);
    if (found.length === count) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const request = async (method: "GET" | "POST", path: string, body?: object, key?: string) => {
  const response = await fetch(`${url}/v1/dead-letters${path}`, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...(key !== undefined && { "idempotency-key": key }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, never> };
};

test("they are listed newest first, page by page, and told with their input and failures", async () => {
  await paused(5);
  const seen: string[] = [];
  for (let query = "?limit=2"; ; ) {
    const { status, body } = await request("GET", query);
    assert.equal(status, 200);
    const { items, nextCursor } = body as never as { items: { id: string }[]; nextCursor?: string };
    seen.push(...items.map(({ id }) => id));
    if (nextCursor === undefined) break;
    query = `?limit=2&cursor=${nextCursor}`;
  }
  assert.ok(seen.length >= 5);
  assert.equal(new Set(seen).size, seen.length);
  const { body } = await request("GET", `/${seen[0]}`);
  assert.deepEqual(
    [body.kind, body.name, body.attempts, body.input, body.decisions, body.version],
    ["activity", "charge", 1, { id: "7" }, ["retry", "resolve", "fail"], "1"],
  );
  const { failure } = body as never as { failure: { code: string; cause: { name: string } } };
  assert.deepEqual([failure.code, failure.cause.name], ["BANK_CLOSED", "TypeError"]);
  const typed = await client.deadLetters.get(seen[0] ?? "");
  assert.deepEqual(typed.input, { id: 7n });
  assert.ok(typed.at instanceof Date && typed.firstFailedAt instanceof Date);
});

test("an output that does not fit is 422 and changes nothing; a decision is taken once, and repeated under its key", async () => {
  const [letter] = await paused(1);
  const path = `/${letter?.id}`;
  const wrong = await request("POST", `${path}/resolve`, { output: 5 });
  assert.deepEqual([wrong.status, wrong.body.code], [422, "INVALID_INPUT"]);
  assert.match(JSON.stringify(wrong.body.errors), /"pointer":"\/output"/);
  assert.equal((await request("GET", path)).status, 200);
  const said = { output: "by hand", note: "4711" };
  assert.equal((await request("POST", `${path}/resolve`, said, "k")).status, 202);
  const again = await request("POST", `${path}/resolve`, said, "k");
  assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [202, "true"]);
  const late = await request("POST", `${path}/fail`, {});
  assert.deepEqual([late.status, late.body.code], [409, "DEAD_LETTER_DECIDED"]);
  assert.match(String(late.body.detail), /somebody decided "resolve" \("4711"\)/);
  assert.equal(await client.handle(pay, letter?.instanceId ?? "").result(), "by hand");
});

test("what cannot be is refused: an output for a retry, a discarded activity, a letter that nobody wrote", async () => {
  const [letter] = await paused(1);
  assert.equal((await request("POST", `/${letter?.id}/retry`, { output: 1 })).status, 422);
  const discarded = await request("POST", `/${letter?.id}/discard`, {});
  assert.deepEqual([discarded.status, discarded.body.code], [409, "DECISION_NOT_POSSIBLE"]);
  assert.equal((await request("POST", "/a1.0~none/retry", {})).status, 404);
  assert.equal((await request("POST", "/fail", { letters: { ids: [] } })).status, 422);
});

test("many are decided on as a batch, whose progress is told", async () => {
  const letters = await paused(3);
  const ids = letters.map(({ id }) => id);
  const begun = await request("POST", "/resolve", { letters: { ids }, output: "by hand", note: "all of them" }, "monday");
  assert.equal(begun.status, 202);
  assert.equal(begun.headers.get("location"), `/v1/batches/${begun.body.id}`);
  const again = await request("POST", "/resolve", { letters: { ids }, output: "by hand", note: "all of them" }, "monday");
  assert.deepEqual([again.body.id, again.headers.get("idempotency-replayed")], [begun.body.id, "true"]);
  for (const { instanceId } of letters) assert.equal(await client.handle(pay, instanceId).result(), "by hand");
  const about = await client.batches.get(String(begun.body.id));
  assert.deepEqual(about.operation, { type: "decide", decision: "resolve", letters: { ids }, output: "by hand", note: "all of them" });
});
