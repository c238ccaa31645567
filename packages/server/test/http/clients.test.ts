/** The same program over HTTP and in the orchestrator's own process: one behaviour. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type ApiError, PayloadError, TimeoutError, WorkflowError, WovyrError } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";
import { encodePayload, type FailureView, toPlainJson } from "@wovyr/sdk/internal";
import {
  Approved,
  approval,
  chained,
  echo,
  failing,
  nothing,
  OutOfStock,
  orchestrated,
  order,
  retrying,
  type Served,
} from "./orchestrated.ts";

let served: Served;
const closers: (() => unknown)[] = [];
before(async () => {
  served = await orchestrated({ after: (close) => void closers.push(close as () => unknown) });
});
after(async () => {
  for (const close of closers) await close();
});

const both: readonly (readonly [way: "http" | "local", client: () => Client])[] = [
  ["http", () => served.client],
  ["local", () => served.local],
];

function nested(depth: number): unknown {
  let value: unknown = new Date(0);
  for (let at = 0; at < depth; at++) value = at % 2 === 0 ? [value] : { value };
  return value;
}

const kept: readonly (readonly [what: string, value: unknown])[] = [
  ["a huge bigint", 10n ** 30n],
  ["a date", new Date("2030-01-01T00:00:00.123Z")],
  ["a date that is none", new Date(Number.NaN)],
  [
    "a map of maps",
    new Map<unknown, unknown>([
      [1n, new Map([["a", new Date(0)]])],
      ["b", undefined],
    ]),
  ],
  ["a set", new Set([1, "a", undefined])],
  ["bytes", new Uint8Array([0, 1, 255])],
  ["nothing", undefined],
  ["nothing in places", { a: undefined, b: [undefined, null] }],
  ["numbers at the edge", [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 1e21, 5e-324, Number.MAX_SAFE_INTEGER + 2]],
  ["an expression", /a\/b"c/giu],
  ["a URL", new URL("https://example.test/a?b=c#d")],
  ["a sparse array", Object.assign(new Array(3), { 0: 1, 2: 3 })],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
  ["a deep value", nested(100)],
  ["half a surrogate pair", "a\ud800b"],
  ["NUL", { "\u0000": "\u0000" }],
  ["text that looks like a payload", "~[1]"],
  ["an object that looks like a tag", { $type: "Error", __proto__x: 1, type: "Date" }],
  ["keys of a prototype", JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}')],
  ["keys of a prototype beside a date", Object.assign(JSON.parse('{"__proto__":{"x":1}}'), { at: new Date(0) })],
];

/** Equal in every bit that is stored; `deepEqual` takes two dates that are none for different ones. */
function assertSame(actual: unknown, expected: unknown, way: string): void {
  assert.equal(encodePayload(actual), encodePayload(expected), way);
}

for (const [what, value] of kept) {
  test(`H074 H075 ${what} comes back as it was sent, by every way, and is shown as plain JSON`, async () => {
    for (const [way, client] of both) {
      const handle = await client().start(echo, value, { memo: { value } });
      assertSame(await handle.result(), value, way);
      const { memo, output } = await handle.describe();
      assertSame(memo.value, value, way);
      assertSame(output, value, way);
      for await (const event of handle.history()) {
        if (event.type === "InstanceStarted") assertSame(event.data.input, value, way);
        if (event.type === "InstanceCompleted") assertSame(event.data.output, value, way);
      }
      const response = await fetch(`${served.url}/v1/instances/${handle.id}/result`);
      const shown: unknown = JSON.parse(JSON.stringify(toPlainJson(value)));
      assert.deepEqual(((await response.json()) as { output: unknown }).output, shown, way);
      const about = (await (await fetch(`${served.url}/v1/instances/${handle.id}`)).json()) as {
        memo: { value: unknown };
        output: unknown;
      };
      assert.deepEqual([about.memo.value ?? null, about.output ?? null], [shown, shown], way);
      const history = (await (await fetch(`${served.url}/v1/instances/${handle.id}/history`)).json()) as {
        items: { data: { output?: unknown } }[];
      };
      assert.deepEqual(history.items.at(-1)?.data.output ?? null, shown, way);
    }
    assert.equal(Reflect.get({}, "x"), undefined);
  });
}

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
const refused: readonly (readonly [what: string, value: unknown, path: RegExp])[] = [
  ["a function", { a: [0, 1, 2, { fn: () => 1 }] }, /\.a\[3\]\.fn$/],
  ["a symbol", { a: Symbol("x") }, /\.a$/],
  ["a cycle", { cycle }, /\.cycle\.self$/],
  ["a promise", [Promise.resolve(1)], /\[0\]$/],
  ["an instance of a class", { handle: new (class Connection {})() }, /\.handle$/],
  [
    "a getter that throws",
    {
      get a() {
        throw new Error("no");
      },
    },
    /\.a$/,
  ],
];

for (const [what, value, path] of refused) {
  test(`H076 ${what} is refused where it is sent, with its place`, async () => {
    for (const [way, client] of both) {
      for (const act of [() => client().start(echo, value), () => client().execute(echo, 1, { memo: { value } })]) {
        const error = await act().catch((thrown: unknown) => thrown);
        assert.ok(error instanceof PayloadError, way);
        assert.equal(error.code, "PAYLOAD_UNSERIALIZABLE");
        assert.match(error.path ?? "", path, way);
      }
    }
  });
}

test("H079 an input over the limit is refused with its size and the limit, by every way", async () => {
  const value = "x".repeat(3 * 1024 * 1024);
  for (const [way, client] of both) {
    const error = await client()
      .start(echo, value)
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof WovyrError, way);
    assert.equal(error.code, "PAYLOAD_TOO_LARGE", way);
    assert.match(error.message, /3145\d\d\d bytes.*2097152/, way);
  }
});

test("H072 a run that failed rejects with what it threw, as its own class", async () => {
  for (const [way, client] of both) {
    const error = await client()
      .execute(failing, "A1")
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof WorkflowError, way);
    assert.deepEqual([error.status, error.workflow, error.code], ["Failed", "failing", "WORKFLOW_FAILED"]);
    assert.match(error.message, /no A1 left$/);
    assert.ok(error.cause instanceof OutOfStock, way);
    assert.deepEqual([error.cause.sku, error.cause.since], ["A1", new Date(0)]);
    const stranger = await client()
      .handle(error.instanceId)
      .result()
      .catch((thrown: unknown) => thrown);
    assert.ok(stranger instanceof WorkflowError);
    assert.equal((stranger.cause as Error).name, "OutOfStock");
  }
});

test("H071 the chain of causes is told with its stacks, in a result, in a description and in plain JSON", async () => {
  for (const [way, client] of both) {
    const error = (await client()
      .execute(chained, "A1")
      .catch((thrown: unknown) => thrown)) as WorkflowError;
    const q = error.cause as Error;
    const t = q.cause as Error;
    const innermost = t.cause as OutOfStock;
    assert.deepEqual([q.message, t.name, t.message, innermost.name, innermost.sku], ["q", "TypeError", "t", "OutOfStock", "A1"], way);
    assert.ok(t instanceof TypeError && innermost instanceof OutOfStock, way);
    for (const each of [q, t, innermost]) assert.match(each.stack ?? "", /orchestrated\.ts:\d+/, way);
    const { failure } = await client().handle(error.instanceId).describe();
    const raw = (await (await fetch(`${served.url}/v1/instances/${error.instanceId}`)).json()) as { failure: FailureView };
    for (const view of [failure, raw.failure]) {
      assert.deepEqual([view?.cause?.cause?.name, view?.cause?.cause?.message], ["OutOfStock", "no A1 left"], way);
      assert.match(view?.cause?.stack ?? "", /orchestrated\.ts:\d+/, way);
    }
  }
});

test("H075 a list shows runs with odd values in them, as JSON that can be read, without a raw control character", async () => {
  const red = "\u001b[31mred\u0007\u0000";
  const handle = await served.local.start(echo, { [red]: [10n, new Date(0), red] }, { attributes: { red }, memo: { red } });
  await handle.result();
  for (const path of ["instances?limit=500", `instances/${handle.id}`, `instances/${handle.id}/history`, `instances/${handle.id}/result`]) {
    const text = await (await fetch(`${served.url}/v1/${path}`)).text();
    assert.ok(text.includes(JSON.stringify(red).slice(1, 12)), path);
    JSON.parse(text);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is the case
    assert.doesNotMatch(text, /[\u0000-\u001f]/, path);
  }
});

test("an input that does not fit is refused with its violations, by every way", async () => {
  for (const [way, client] of both) {
    const error = await client()
      .start(order, { id: "a", total: -1 })
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof WovyrError, way);
    assert.equal(error.code, "INVALID_INPUT", way);
    assert.match(error.message, /\/total/, way);
  }
});

test("an event is delivered, kept until it is awaited, and refused by a run that is over", async () => {
  for (const [way, client] of both) {
    const handle = await client().start(approval, undefined);
    await handle.send(Approved, { by: way });
    assert.deepEqual(await handle.result(), { by: way });
    await assert.rejects(handle.send(Approved, { by: "late" }), { code: "INSTANCE_CLOSED" });
    await assert.rejects(client().handle("nobody").send(Approved, { by: "x" }), { code: "INSTANCE_NOT_FOUND" });
  }
});

test("the same event with the same key is delivered once", async () => {
  for (const [way, client] of both) {
    const handle = await client().start(approval, undefined);
    const options = { idempotencyKey: `key-of-${way}` };
    await Promise.all([1, 2, 3].map(() => handle.send(Approved, { by: way }, options)));
    await handle.send(Approved, { by: way }, options);
    let received = 0;
    for await (const event of handle.history()) if (event.type === "EventReceived") received += 1;
    assert.equal(received, 1, way);
  }
});

test("a run that is cancelled or terminated rejects with that status", async () => {
  for (const [way, client] of both) {
    const cancelled = await client().start(approval, undefined);
    await cancelled.cancel({ reason: "no longer needed" });
    await assert.rejects(cancelled.result(), { name: "WorkflowError", status: "Cancelled" }, way);
    const terminated = await client().start(approval, undefined);
    await terminated.terminate({ reason: "no longer needed" });
    await assert.rejects(terminated.result(), { name: "WorkflowError", status: "Terminated" }, way);
  }
});

test("a result that does not come in time is a TimeoutError, and an aborted wait rejects with its reason", async () => {
  for (const [way, client] of both) {
    const handle = await client().start(approval, undefined);
    const error = await handle.result({ timeout: 20 }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof TimeoutError, way);
    const controller = new AbortController();
    const waiting = handle.result({ signal: controller.signal });
    setImmediate(() => controller.abort(new Error("enough")));
    await assert.rejects(waiting, { message: "enough" }, way);
    await handle.terminate();
  }
});

test("a result that comes while it is waited for is there at once", async () => {
  for (const [, client] of both) {
    const handle = await client().start(approval, undefined);
    const result = handle.result({ timeout: "20s" });
    await handle.send(Approved, { by: "me" });
    assert.deepEqual(await result, { by: "me" });
  }
});

test("a workflow that returns nothing resolves with undefined, and shows null in JSON", async () => {
  for (const [, client] of both) assert.equal(await client().execute(nothing), undefined);
  const handle = await served.client.start(nothing);
  await handle.result();
  const response = await fetch(`${served.url}/v1/instances/${handle.id}/result`);
  assert.deepEqual(await response.json(), { id: handle.id, runId: handle.runId, status: "Completed", output: null });
});

test("an id that is open is refused, or returned when that is asked for, and free again when its run is over", async () => {
  for (const [way, client] of both) {
    const id = `taken-${way}`;
    const first = await client().start(approval, undefined, { id });
    await assert.rejects(client().start(approval, undefined, { id }), { code: "INSTANCE_EXISTS" });
    const same = await client().start(approval, undefined, { id, onConflict: "return" });
    assert.equal(same.runId, first.runId);
    await assert.rejects(client().start(echo, 1, { id, onConflict: "return" }), { code: "INSTANCE_EXISTS" });
    await first.terminate();
    const next = await client().start(echo, 1, { id });
    assert.notEqual(next.runId, first.runId);
    assert.equal(await next.result(), 1);
    await assert.rejects(first.result(), { status: "Terminated" }, "a handle keeps to its own run");
    assert.equal(await client().handle(echo, id).result(), 1);
  }
});

test("the same start with the same key is done once, another one with that key is refused", async () => {
  for (const [way, client] of both) {
    const options = { idempotencyKey: `start-${way}` };
    const handles = await Promise.all([1, 2, 3].map(() => client().start(echo, { way }, options)));
    assert.equal(new Set(handles.map(({ runId }) => runId)).size, 1);
    await assert.rejects(client().start(echo, { way: "another" }, options), { code: "IDEMPOTENCY_CONFLICT" });
  }
});

test("a batch starts what it can and says of each why not", async () => {
  for (const [way, client] of both) {
    const outcomes = await client().startBatch(order, [
      { input: { id: "a", total: 1 }, id: `batch-${way}` },
      { input: { id: "b", total: -1 } },
      { input: { id: "c", total: 3 }, idempotencyKey: `batch-key-${way}` },
    ]);
    assert.deepEqual(
      outcomes.map(({ ok }) => ok),
      [true, false, true],
      way,
    );
    const [first, second, third] = outcomes;
    assert.ok(first?.ok && third?.ok && second !== undefined && !second.ok);
    assert.equal(first.handle.id, `batch-${way}`);
    assert.deepEqual([await first.handle.result(), await third.handle.result()], ["a:1", "c:3"]);
    assert.ok(second.error instanceof WovyrError);
    assert.equal(second.error.code, "INVALID_INPUT");
    if (way === "http") assert.deepEqual((second.error as ApiError).errors[0]?.pointer, "/input/total");
  }
  assert.deepEqual(await served.client.startBatch(echo, []), []);
});

test("a batch of more than a thousand is sent in parts, and comes back in order", async () => {
  const starts = Array.from({ length: 1_050 }, (_, input) => ({ input }));
  const outcomes = await served.client.startBatch(echo, starts);
  assert.equal(outcomes.length, 1_050);
  const last = outcomes[1_049];
  assert.ok(last?.ok);
  assert.equal(await last.handle.result(), 1_049);
});

test("a description keeps its types, also of what is still to come", async () => {
  for (const [way, client] of both) {
    const handle = await client().start(retrying, undefined, {
      attributes: { due: new Date(0), size: 3, tags: ["a"] },
      correlationId: "c-1",
    });
    for await (const { type } of handle.stream()) if (type === "ActivityFailed") break;
    const description = await handle.describe();
    const [activity] = description.activities;
    assert.ok(description.startedAt instanceof Date, way);
    assert.ok(activity?.nextRetryAt instanceof Date, way);
    assert.equal(activity.lastFailure?.message, "not today");
    assert.equal(description.correlationId, "c-1");
    assert.deepEqual(description.attributes, { due: "1970-01-01T00:00:00.000Z", size: 3, tags: ["a"] });
    await handle.terminate();
  }
});

test("a list is read page by page to its end, and is filtered by workflow, status and attributes", async () => {
  const group = "list-test";
  await served.client.startBatch(
    echo,
    Array.from({ length: 120 }, (_, at) => ({
      input: at,
      id: `l${at}`,
      attributes: { group, number: at, text: String(at), even: at % 2 === 0 },
    })),
  );
  await served.local.start(approval, undefined, { attributes: { group } });
  for (const [way, client] of both) {
    const idsOf = async (filter: Parameters<Client["list"]>[0]) => {
      const ids: string[] = [];
      for await (const { id } of client().list(filter)) ids.push(id);
      return ids;
    };
    const everything = await idsOf({ workflow: echo, attributes: { group } });
    assert.equal(new Set(everything).size, 120, way);
    assert.equal(everything.length, 120, way);
    assert.deepEqual(await idsOf({ attributes: { group, number: 42 } }), ["l42"], way);
    assert.deepEqual(await idsOf({ attributes: { group, text: "42" } }), ["l42"], way);
    assert.deepEqual(await idsOf({ attributes: { group, text: 42 } }), [], way);
    assert.equal((await idsOf({ attributes: { group, even: true } })).length, 60, way);
    assert.equal((await idsOf({ attributes: { group }, status: ["Waiting", "Parked"] })).length, 1, way);
    assert.equal((await idsOf({ attributes: { group }, startedAfter: new Date(Date.now() + 60_000) })).length, 0, way);
  }
});

test("pages of any size hold every instance once, newest first", async () => {
  for (const limit of [1, 7, 500]) {
    const seen: string[] = [];
    let cursor = "";
    do {
      const response = await fetch(`${served.url}/v1/instances?attributes.group=list-test&limit=${limit}${cursor}`);
      const page = (await response.json()) as { items: { id: string }[]; nextCursor?: string };
      assert.ok(page.items.length <= limit);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor === undefined ? "" : `&cursor=${page.nextCursor}`;
    } while (cursor !== "");
    assert.equal(seen.length, 121);
    assert.equal(new Set(seen).size, 121);
  }
});

test("a start with a delay or a time to come is scheduled, and its handle is there at once", async () => {
  for (const [way, client] of both) {
    for (const options of [{ delay: "1 day" }, { startAt: new Date(Date.now() + 86_400_000) }] as const) {
      const handle = await client().start(echo, 1, options);
      assert.equal((await handle.describe()).status, "Scheduled", `${way} ${Object.keys(options)}`);
      await handle.terminate();
    }
  }
});
