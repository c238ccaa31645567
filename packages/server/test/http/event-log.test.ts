/** History and streams of real runs: every event once and in order, wherever a reader comes in. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { activity, all, workflow } from "@wovyr/sdk";
import { createClient, type Handle } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";
import { Approved, approval } from "./orchestrated.ts";

const noop = activity("noop", async (at: number) => at);
const wide = workflow("wide", async function* (width: number) {
  const results = yield* all(Array.from({ length: width }, (_, at) => noop(at)));
  return results.length;
});

let orchestrator: Orchestrator;
let url: string;
let handle: Handle<number>;
before(async () => {
  orchestrator = await createOrchestrator({ workflows: [wide, approval], store: memoryStore() });
  url = await orchestrator.listen({ port: 0 });
  handle = await orchestrator.client.start(wide, 700, { id: "wide" });
  assert.equal(await handle.result(), 700);
});
after(() => orchestrator.close());

type Page = { readonly runId: string; readonly items: { readonly seq: number; readonly type: string }[]; readonly nextSeq?: number };

async function pageOf(query: string): Promise<Page> {
  const response = await fetch(`${url}/v1/instances/wide/history?${query}`);
  assert.equal(response.status, 200);
  return (await response.json()) as Page;
}

test("H096 history in pages of any size is every event once, in order, though most have one time", async () => {
  for (const limit of [1, 7, 500, 1_000]) {
    const seqs: number[] = [];
    for (let next: number | undefined = 1; next !== undefined; ) {
      const page: Page = await pageOf(`fromSeq=${next}&limit=${limit}`);
      assert.ok(page.items.length <= limit);
      seqs.push(...page.items.map(({ seq }) => seq));
      next = page.nextSeq;
    }
    assert.ok(seqs.length > 1_400);
    assert.deepEqual(
      seqs,
      Array.from(seqs, (_, at) => at + 1),
    );
  }
});

test("history from behind its end is an empty page", async () => {
  const page = await pageOf("fromSeq=1000000");
  assert.deepEqual([page.items, page.nextSeq], [[], undefined]);
});

test("the client reads it to its end", async () => {
  let last = "";
  let count = 0;
  for await (const event of createClient({ url }).handle("wide").history()) {
    count += 1;
    assert.equal(event.seq, count);
    last = event.type;
  }
  assert.equal(last, "InstanceCompleted");
});

function idsOf(text: string): string[] {
  return [...text.matchAll(/^id: (.*)$/gm)].map(([, id = ""]) => id);
}

test("a stream that is resumed after any event goes on with the next, up to the last; after that there is nothing", async () => {
  const whole = idsOf(await (await fetch(`${url}/v1/instances/wide/stream`)).text());
  assert.ok(whole.length > 1_400);
  assert.equal(whole[0], `${handle.runId}:1`);
  for (const at of [0, 1, 2, 199, 200, 201, 701, 702, whole.length - 2]) {
    const response = await fetch(`${url}/v1/instances/wide/stream`, { headers: { "last-event-id": whole[at] ?? "" } });
    assert.deepEqual(idsOf(await response.text()), whole.slice(at + 1), `after ${at + 1}`);
  }
  const over = await fetch(`${url}/v1/instances/wide/stream`, { headers: { "last-event-id": whole.at(-1) ?? "" } });
  assert.deepEqual([over.status, await over.text()], [204, ""]);
});

test("H116 an id of another instance's stream is refused, and shows nothing of it", async () => {
  const other = await orchestrator.client.start(approval, undefined, { id: "other" });
  for (const id of [
    `${other.runId}:1`,
    `${handle.runId}x:1`,
    `${handle.runId}:1000000`,
    `${handle.runId}:0`,
    `${handle.runId}:-1`,
    "text",
    "deleted-run:5",
  ]) {
    const response = await fetch(`${url}/v1/instances/wide/stream`, { headers: { "last-event-id": id } });
    const text = await response.text();
    assert.equal(response.status, 400, `${id} ${text}`);
    assert.match(text, /"code":"INVALID_CURSOR"/);
  }
  const missing = await fetch(`${url}/v1/instances/nobody/stream`, { headers: { "last-event-id": `${handle.runId}:1` } });
  assert.equal(missing.status, 404);
  await other.terminate();
});

test("a reader that follows live sees what is recorded before it came and what comes after", async () => {
  const client = createClient({ url });
  const live = await client.start(approval, undefined, { id: "live" });
  const types: string[] = [];
  for await (const event of live.stream()) {
    types.push(event.type);
    if (event.type === "EventAwaited") await live.send(Approved, { by: "me" });
  }
  assert.equal(types[0], "InstanceStarted");
  assert.equal(types.at(-1), "InstanceCompleted");
  const recorded: string[] = [];
  for await (const event of live.history()) recorded.push(event.type);
  assert.deepEqual(types, recorded);
});

test("an old run of an id that is in use again can still be read and streamed by its own id", async () => {
  const { client } = orchestrator;
  const first = await client.start(approval, undefined, { id: "again" });
  await first.terminate();
  const second = await client.start(approval, undefined, { id: "again" });
  const text = await (await fetch(`${url}/v1/instances/again/stream?runId=${first.runId}`)).text();
  assert.ok(idsOf(text).every((id) => id.startsWith(`${first.runId}:`)));
  assert.match(text, /event: InstanceTerminated/);
  const resumed = await fetch(`${url}/v1/instances/again/stream`, { headers: { "last-event-id": `${first.runId}:1` } });
  assert.deepEqual(idsOf(await resumed.text()), idsOf(text).slice(1));
  const result = await (await fetch(`${url}/v1/instances/again/result?runId=${first.runId}`)).json();
  assert.equal((result as { status: string }).status, "Terminated");
  await second.terminate();
});

test("when the orchestrator closes, who waits gets 202 and who follows gets the end of the stream", async () => {
  const own = await createOrchestrator({ workflows: [approval], store: memoryStore() });
  const at = await own.listen({ port: 0 });
  const open = await own.client.start(approval, undefined, { id: "open" });
  const stream = await fetch(`${at}/v1/instances/open/stream`);
  const arrived = new Promise<void>((resolve) => own.http.server.once("request", () => resolve()));
  const poll = fetch(`${at}/v1/instances/open/result?wait=60s`);
  await arrived;
  await own.close();
  const polled = await poll;
  assert.deepEqual([polled.status, await polled.json()], [202, { id: "open", runId: open.runId, status: "Waiting" }]);
  const text = await stream.text();
  assert.match(text, /event: EventAwaited/);
});
