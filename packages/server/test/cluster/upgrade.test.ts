import assert from "node:assert/strict";
import { test } from "node:test";
import { Type, type WovyrError, workflow } from "@wovyr/sdk";
import { type Node, nodes } from "./nodes.ts";

const job = (version: string) =>
  workflow("job", { version, input: Type.String() }, async function* (text) {
    return `${version} ${text}`;
  });
const fresh = workflow("fresh", { input: Type.String() }, async function* (text) {
  return text;
});
const single = workflow("single", { input: Type.String(), singleton: { key: (text) => text } }, async function* (text) {
  return text;
});
const nothing = workflow("nothing", { input: Type.String() }, async function* (text) {
  return text;
});
type AnyText = typeof fresh;

test("while two releases run side by side, any node starts what any other one has", async (context) => {
  const place = await nodes(context, 1, [job("1")]);
  await place.open({ workflows: [job("2"), fresh, single], release: "2" });
  const [old] = place.all as [Node, Node];
  const result = (node: Node, name: AnyText, options: object) =>
    node.client.start(name, "x", options).then((handle) => handle.result({ timeout: "10s" }));
  const byName = async ({ url }: Node, id: string) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ id, input: "x" }) };
    return ((await (await fetch(`${url}/v1/workflows/job/instances?wait=10s`, init)).json()) as { output?: unknown }).output;
  };
  const all: Promise<unknown>[] = [];
  const expected: unknown[] = [];
  const ends = (wanted: unknown, run: Promise<unknown>) => {
    all.push(run);
    expected.push(wanted);
  };
  for (const asked of place.all)
    for (const owner of place.all) {
      const id = (prefix: string) => place.idOf(owner, `${prefix}-${place.all.indexOf(asked)}-${place.all.indexOf(owner)}`);
      ends(asked === old ? "1 x" : "2 x", byName(asked, await id("named")));
      ends("1 x", result(asked, job("1"), { id: await id("first"), version: "1" }));
      ends("2 x", result(asked, job("1"), { id: await id("second"), version: "2" }));
      ends("x", result(asked, fresh, { id: await id("fresh") }));
    }
  for (const { client, local } of place.all) {
    ends("x", client.execute(fresh, "x"));
    ends("x", local.execute(fresh, "x"));
    ends(
      Array.from({ length: 10 }, (_, n) => `${n}`),
      Promise.all(Array.from({ length: 10 }, (_, n) => client.execute(single, `${n}`, { onConflict: "return" }))),
    );
    const batch = await client.startBatch(
      fresh,
      Array.from({ length: 10 }, (_, n) => ({ input: `${n}`, idempotencyKey: `b${n}` })),
    );
    assert.deepEqual(
      batch.map((item) => item.ok),
      Array(10).fill(true),
    );
  }
  assert.deepEqual(await Promise.all(all), expected);
  const again = await Promise.all(place.all.map(({ client }) => client.start(fresh, "x", { id: "same", idempotencyKey: "once" })));
  assert.equal(new Set(again.map(({ runId }) => runId)).size, 1);
  for (const { client } of place.all)
    for (const [name, options] of [
      [job("1"), { version: "3" }],
      [nothing, {}],
    ] as const)
      await assert.rejects(client.start(name, "x", { id: "none", ...options }), (error: WovyrError) => error.code === "WORKFLOW_NOT_FOUND");
});
