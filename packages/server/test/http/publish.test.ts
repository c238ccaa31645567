/** `POST /v1/events`: CloudEvents in both modes, and the client over HTTP and in process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";
import { type Answer, rawRequest } from "./raw-request.ts";

const Paid = event("paid", Type.Object({ amount: Type.Number(), at: Type.Optional(Type.Date()) }));
const waiting = workflow("waiting", { events: [Paid] }, async function* (key: string) {
  return (yield* awaitEvent(Paid, { key })).amount;
});
const audit = workflow("audit", { triggers: [Paid] }, async function* ({ amount }: { amount: number }) {
  return amount;
});

let orchestrator: Orchestrator;
let url: string;
before(async () => {
  orchestrator = await createOrchestrator({ workflows: [waiting, audit], store: memoryStore() });
  url = await orchestrator.listen({ port: 0 });
});
after(() => orchestrator.close());

const ways: readonly (readonly [string, () => Client])[] = [
  ["over HTTP", () => createClient({ url })],
  ["in process", () => orchestrator.client],
];

for (const [way, client] of ways)
  test(`a publication is answered alike ${way}`, async () => {
    const key = `client ${way}`;
    const options = { key, idempotencyKey: key.replaceAll(" ", "-") };
    const first = await client().publish(Paid, { amount: 5, at: new Date(0) }, options);
    assert.deepEqual([first.id, first.delivered, first.started.length, first.replayed], [options.idempotencyKey, 0, 1, false]);
    assert.deepEqual(await client().publish(Paid, { amount: 5, at: new Date(0) }, options), { ...first, replayed: true });
    assert.equal(await client().execute(waiting, key), 5, "published before the run was there");
    await assert.rejects(client().publish(Paid, { amount: 6 }, options), { code: "IDEMPOTENCY_CONFLICT" });
    await assert.rejects(client().publish(Paid, { amount: "6" } as never, { key }), { code: "INVALID_INPUT" });
    await assert.rejects(client().publish(Paid, { amount: 6 }, { key: "" }), { code: "INVALID_OPTION" });
  });

test("the two ways to publish name the same publication by the same idempotency key", async () => {
  const [http, local] = ways.map(([, client]) => client());
  assert.ok(http && local);
  const first = await http.publish(Paid, { amount: 1 }, { idempotencyKey: "shared" });
  assert.deepEqual(await local.publish(Paid, { amount: 1 }, { idempotencyKey: "shared" }), { ...first, replayed: true });
});

const attributes = { specversion: "1.0", id: "1", source: "/shop", type: "paid" };
const structured = (event: object, type = "application/cloudevents+json"): Promise<Answer> =>
  rawRequest(url, { method: "POST", path: "/v1/events", headers: { "content-type": type }, body: JSON.stringify(event) });
const binary = (headers: Record<string, string>, body?: string): Promise<Answer> =>
  rawRequest(url, { method: "POST", path: "/v1/events", headers: { "content-type": "application/json", ...headers }, body });

test("a structured CloudEvent is published: its type is the name, its subject the key, its source and id the identity", async () => {
  const sent = { ...attributes, subject: "s1", time: "2026-01-01T00:00:00Z", traceparent: "x", data: { amount: 7 } };
  const answer = await structured(sent);
  assert.equal(answer.status, 202, answer.text);
  assert.deepEqual([answer.json.id, answer.json.delivered, (answer.json.started as unknown[]).length], ["1", 0, 1]);
  const again = await structured(sent, "application/json");
  assert.deepEqual([again.json, again.headers["idempotency-replayed"]], [answer.json, "true"]);
  assert.equal(await orchestrator.client.execute(waiting, "s1"), 7);
  assert.equal((await structured({ ...sent, data: { amount: 8 } })).json.code, "IDEMPOTENCY_CONFLICT");
  const elsewhere = await structured({ ...sent, source: "/other" });
  assert.deepEqual([elsewhere.status, elsewhere.headers["idempotency-replayed"]], [202, undefined]);
});

test("a binary CloudEvent is the same event as a structured one", async () => {
  const headers = {
    "ce-specversion": "1.0",
    "ce-id": "b1",
    "ce-source": "/shop",
    "ce-type": "paid",
    "ce-subject": "caf%C3%A9",
    "ce-trace": "x",
  };
  const answer = await binary(headers, '{"amount":9}');
  assert.equal(answer.status, 202, answer.text);
  assert.equal(await orchestrator.client.execute(waiting, "café"), 9);
  const same = await structured({ ...attributes, id: "b1", subject: "café", data: { amount: 9 } });
  assert.equal(same.headers["idempotency-replayed"], "true");
});

test("what is no CloudEvent of version 1.0 is refused with pointers, and nothing of it is written", async () => {
  const wrong: readonly (readonly [Answer, number, string])[] = [
    [await structured({ ...attributes, specversion: "0.3" }), 422, "/specversion"],
    [await structured({ ...attributes, id: "" }), 422, "/id"],
    [await structured({ ...attributes, type: undefined }), 422, "/type"],
    [await structured({ ...attributes, source: "a b" }), 422, "/source"],
    [await structured({ ...attributes, id: "n1", "not-a-name": "x", data: { amount: 1 } }), 422, "/not-a-name"],
    [await structured({ ...attributes, id: "n1", data: { amount: "x" } }), 422, "/data/amount"],
    [await binary({ "ce-specversion": "1.0", "ce-id": "n1", "ce-type": "paid" }, "{}"), 422, "/headers/ce-source"],
    [await binary({ "ce-specversion": "1.0", "ce-id": "n1", "ce-source": "/s", "ce-type": "paid" }, '{"amount":"x"}'), 422, "/amount"],
    [await binary({ "ce-specversion": "1.0", "ce-id": "%ff", "ce-source": "/s", "ce-type": "paid" }, "{}"), 400, "/headers/ce-id"],
  ];
  for (const [{ status, json, text }, wanted, pointer] of wrong) {
    assert.equal(status, wanted, text);
    assert.deepEqual(
      (json.errors as { pointer: string }[]).map((each) => each.pointer),
      [pointer],
      text,
    );
  }
  const never = await structured({ ...attributes, id: "n1", time: "yesterday", data: { amount: 1 } });
  assert.deepEqual([never.status, never.json.code], [400, "INVALID_DURATION"]);
  assert.deepEqual((never.json.errors as { pointer: string }[])[0]?.pointer, "/time");
  const base64 = await structured({ ...attributes, id: "n2", data_base64: "eyJhbW91bnQiOjF9" });
  assert.equal(base64.status, 422);
  assert.match(
    JSON.stringify(base64.json.errors),
    /"\/data_base64","message":"is not taken: the data of an event is JSON here; give it as `data`"/,
  );
  const right = await structured({ ...attributes, id: "n1", data: { amount: 1 } });
  assert.deepEqual([right.status, right.headers["idempotency-replayed"]], [202, undefined]);
});

test("a workflow shows what triggers it", async () => {
  const answer = await rawRequest(url, { path: "/v1/workflows/audit" });
  assert.deepEqual(answer.json.triggers, ["paid"]);
});
