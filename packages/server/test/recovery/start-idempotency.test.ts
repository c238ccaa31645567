/** One table of rules for every way to start: entry point × state of the run that has the id or the key. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ApiError } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";
import { call } from "./api.ts";
import { logLines } from "./log-lines.ts";
import { failing, Go, listener, timer, trio, workflows } from "./workflows.ts";

type Asked = {
  readonly workflow: string;
  readonly input: unknown;
  readonly id: string;
  readonly key?: string;
  readonly onConflict?: "fail" | "return";
};
/** The run that answers, and whether this is a repeated answer; or the code of the refusal. */
type Answered = { readonly run: string; readonly replayed: boolean } | { readonly refused: string };

const store = memoryStore();
let orchestrator: Orchestrator;
let url: string;

const start = async () => {
  orchestrator = await createOrchestrator({ workflows, store, log: logLines().log, turnTimeout: false });
  url = await orchestrator.listen({ port: 0 });
};
before(start);
after(() => orchestrator.close());

const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : String(error));
const byName = new Map(workflows.map((workflow) => [workflow.name, workflow]));

function byClient(client: () => Client, batch: boolean): (asked: Asked) => Promise<Answered> {
  return async ({ workflow, input, id, key, onConflict }) => {
    const options = { id, ...(key !== undefined && { idempotencyKey: key }), ...(onConflict !== undefined && { onConflict }) };
    const definition = byName.get(workflow) as unknown as typeof timer;
    try {
      if (!batch) return { run: (await client().start(definition, input as number, options)).runId, replayed: false };
      const [item] = await client().startBatch(definition, [{ input: input as number, ...options }]);
      if (item?.ok !== true) return { refused: codeOf(item?.error) };
      return { run: item.handle.runId, replayed: false };
    } catch (error) {
      return { refused: codeOf(error) };
    }
  };
}

const entries: Record<string, (asked: Asked) => Promise<Answered>> = {
  "the in-process client": byClient(() => orchestrator.client, false),
  "a batch of the in-process client": byClient(() => orchestrator.client, true),
  "the HTTP client": byClient(() => createClient({ url }), false),
  "a batch of the HTTP client": byClient(() => createClient({ url }), true),
  "an HTTP request": async ({ workflow, input, id, key, onConflict }) => {
    const { status, body } = await call(
      url,
      "POST",
      `/v1/workflows/${workflow}/instances`,
      { input, id, ...(onConflict && { onConflict }) },
      key,
    );
    return status < 300 ? { run: String(body.runId), replayed: false } : { refused: String(body.code) };
  },
  "an HTTP batch": async ({ workflow, input, id, key, onConflict }) => {
    const item = { input, id, ...(key !== undefined && { idempotencyKey: key }), ...(onConflict && { onConflict }) };
    const { body } = await call(url, "POST", `/v1/workflows/${workflow}/instances/batch`, { items: [item] });
    const [answer] = body.items as [{ ok: boolean; runId: string; problem: { code: string } }];
    return answer.ok ? { run: answer.runId, replayed: false } : { refused: answer.problem.code };
  },
};

/** Brings a run into a state; each takes a string input but `failing`. */
const states: Record<string, { workflow: string; input: unknown; reach(id: string): Promise<void>; closed: boolean }> = {
  open: { workflow: "listener", input: null, reach: async () => {}, closed: false },
  completed: {
    workflow: "listener",
    input: null,
    closed: true,
    async reach(id) {
      await orchestrator.client.handle(listener, id).send(Go, { text: "x" });
      await orchestrator.client.handle(listener, id).result();
    },
  },
  failed: {
    workflow: "failing",
    input: null,
    closed: true,
    reach: (id) => assert.rejects(orchestrator.client.handle(failing, id).result()),
  },
  cancelled: {
    workflow: "listener",
    input: null,
    closed: true,
    async reach(id) {
      await orchestrator.client.handle(id).cancel();
      await assert.rejects(orchestrator.client.handle(id).result());
    },
  },
  terminated: {
    workflow: "listener",
    input: null,
    closed: true,
    async reach(id) {
      await orchestrator.client.handle(id).terminate();
      await assert.rejects(orchestrator.client.handle(id).result());
    },
  },
};

let number = 0;

for (const [entry, ask] of Object.entries(entries))
  describe(`through ${entry}`, () => {
    for (const [state, { workflow, input, reach, closed }] of Object.entries(states))
      for (const restarted of [false, true])
        test(`H051 H053 a second start of one that is ${state}${restarted ? ", after a restart" : ""}`, async () => {
          number += 1;
          const id = `${state}-${number}`;
          const key = `key-${number}`;
          const first = await ask({ workflow, input, id, key });
          assert.ok("run" in first, JSON.stringify(first));
          await reach(id);
          if (restarted) {
            await orchestrator.close();
            await start();
          }
          const same = { run: first.run, replayed: false };
          // The same request is answered again, whatever became of the run.
          assert.deepEqual(await ask({ workflow, input, id, key }), same, "same key");
          assert.deepEqual(await ask({ workflow, input: "other", id, key }), { refused: "IDEMPOTENCY_CONFLICT" }, "same key, other input");
          assert.deepEqual(await ask({ workflow, input, id: `${id}-x`, key }), { refused: "IDEMPOTENCY_CONFLICT" }, "same key, other id");
          // A key belongs to its workflow, an id to all of them.
          const other = await ask({ workflow: "timer", input: 3_600_000, id, key });
          if (closed) assert.ok("run" in other && other.run !== first.run, "same id and key, other workflow, closed");
          else assert.deepEqual(other, { refused: "INSTANCE_EXISTS" }, "same id and key, other workflow");
          if (closed) return;
          assert.deepEqual(await ask({ workflow, input, id, key: `${key}-2` }), { refused: "INSTANCE_EXISTS" }, "same id, other key");
          assert.deepEqual(await ask({ workflow, input, id, key: `${key}-3`, onConflict: "return" }), same, "the open one is wanted");
          assert.deepEqual(
            await ask({ workflow: "timer", input: 1, id, key: `${key}-4`, onConflict: "return" }),
            { refused: "INSTANCE_EXISTS" },
            "the open one is wanted, but it is of another workflow",
          );
          // The first is as it was.
          const { runId, status, historyLength } = await orchestrator.client.handle(id).describe();
          assert.deepEqual([runId, status, historyLength], [first.run, "Waiting", 2]);
        });
  });

test("H052 items of a batch that share a key are one run", async () => {
  const items = ["k", "k", "j"].map((key) => ({ input: 5, idempotencyKey: `h052-${key}` }));
  for (const client of [orchestrator.client, createClient({ url })])
    for (let round = 0; round < 2; round += 1) {
      const [a, b, c] = await client.startBatch(timer, items);
      assert.ok(a?.ok && b?.ok && c?.ok);
      assert.equal(a.handle.runId, b.handle.runId);
      assert.notEqual(a.handle.runId, c.handle.runId);
      assert.deepEqual(await Promise.all([a, b, c].map(({ handle }) => handle.result())), ["awake", "awake", "awake"]);
    }
});

test("H054 a batch that is tried again after 429, 503 and a lost answer starts each item once", async () => {
  const troubles = ["lost", 429, 503] as const;
  let tries = 0;
  const bodies = new Set<unknown>();
  const client = createClient({
    url,
    retry: { initialDelay: 1, maxDelay: 5 },
    fetch: async (...args) => {
      bodies.add(args[1]?.body);
      const trouble = troubles[tries++];
      if (trouble === undefined) return fetch(...args);
      if (trouble !== "lost") return new Response("{}", { status: trouble, headers: { "retry-after": "0" } });
      await (await fetch(...args)).text();
      throw new TypeError("the socket was closed");
    },
  });
  const outcomes = await client.startBatch(
    trio,
    Array.from({ length: 500 }, () => ({ input: ["ab"], correlationId: "h054" })),
  );
  assert.ok(outcomes.every(({ ok }) => ok));
  assert.equal(tries, 4);
  assert.equal(bodies.size, 1, "every try says the same");
  assert.equal(new Set(outcomes.map((outcome) => outcome.ok && outcome.handle.runId)).size, 500);
  let listed = 0;
  for await (const { correlationId } of orchestrator.client.list({ workflow: trio })) if (correlationId === "h054") listed += 1;
  assert.equal(listed, 500);
});

test("H054 a single start without a key is done once, though its answer was lost twice", async () => {
  let tries = 0;
  const client = createClient({
    url,
    retry: { initialDelay: 1, maxDelay: 5 },
    fetch: async (...args) => {
      const response = await fetch(...args);
      tries += 1;
      if (tries > 2) return response;
      await response.text();
      throw new TypeError("the socket was closed");
    },
  });
  await client.start(timer, 3_600_000, { attributes: { case: "h054" } });
  assert.equal(tries, 3);
  let listed = 0;
  for await (const _ of orchestrator.client.list({ attributes: { case: "h054" } })) listed += 1;
  assert.equal(listed, 1);
});

test("H051 a message to an open run is not disturbed by a second start of its id that is on its way", async () => {
  for (let round = 0; round < 20; round += 1) {
    const id = `disturbed-${round}`;
    const handle = await orchestrator.client.start(listener, undefined, { id });
    const second = orchestrator.client.start(timer, 1, { id, idempotencyKey: id });
    const sent = handle.send(Go, { text: "hello" });
    await assert.rejects(second, (error) => codeOf(error) === "INSTANCE_EXISTS");
    await sent;
    assert.equal(await handle.result({ timeout: "5s" }), "hello");
  }
});
