import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { until } from "../recovery/until.ts";
import { nodes } from "./nodes.ts";

const Go = event("go");
const Input = Type.Object({ id: Type.String(), text: Type.String() });
const Synced = event("synced", Input);
const Edited = event("edited", Input);

const single = workflow(
  "single",
  { input: Input, singleton: { key: ({ id }) => id }, triggers: [Synced], events: [Go] },
  async function* ({ text }) {
    yield* awaitEvent(Go);
    return text;
  },
);
const latest = workflow("latest", { input: Input, singleton: { key: ({ id }) => id, onConflict: "cancel" } }, async function* ({ text }) {
  yield* awaitEvent(Go);
  return text;
});
const index = workflow(
  "index",
  { input: Input, debounce: { key: ({ id }) => id, period: "1s" }, triggers: [Edited] },
  async function* ({ text }) {
    return text;
  },
);
const narrow = workflow("narrow", { concurrency: { limit: 1 } }, async function* (text: string) {
  yield* awaitEvent(Go);
  return text;
});
const workflows = [single, latest, index, narrow];

test("a singleton is one on whatever node it is started, and published to", async (context) => {
  const { all } = await nodes(context, 3, workflows);
  for (let n = 0; n < 8; n += 1) {
    const id = `s${n}`;
    const started = await Promise.all(
      all.flatMap(({ client, local }) => [client.start(single, { id, text: "" }), local.start(single, { id, text: "" })]),
    );
    const published = await Promise.all(all.map(({ client }) => client.publish(Synced, { id, text: "" })));
    const runs = [...started.map(({ runId }) => runId), ...published.flatMap(({ started }) => started.map(({ runId }) => runId))];
    assert.deepEqual([runs.length, new Set(runs).size], [9, 1]);
  }
});

test("the last start of a singleton takes the place of the one before, on whatever node", async (context) => {
  const { all } = await nodes(context, 3, workflows);
  const runs = [];
  for (const [at, { client }] of [...all, ...all].entries()) runs.push(await client.start(latest, { id: "x", text: String(at) }));
  assert.equal(new Set(runs.map(({ runId }) => runId)).size, 6);
  const last = runs.at(-1);
  await last?.send(Go);
  assert.equal(await last?.result({ timeout: "10s" }), "5");
});

test("debounced starts are one run, from whatever node they come, with the last input; publications as well", async (context) => {
  const { all } = await nodes(context, 3, workflows);
  for (let n = 0; n < 4; n += 1) {
    const id = `d${n}`;
    const runs: string[] = [];
    for (const [at, { client, local }] of all.entries()) {
      runs.push(
        (await client.start(index, { id, text: `${at} over HTTP` })).runId,
        (await local.start(index, { id, text: `${at}` })).runId,
      );
      const { started } = await client.publish(Edited, { id, text: `${at} published` });
      runs.push(...started.map(({ runId }) => runId));
    }
    assert.deepEqual([runs.length, new Set(runs).size], [9, 1]);
    const handle = all[n % 3]?.client.handle((await all[0]?.client.start(index, { id, text: "last" }))?.id ?? "");
    assert.equal(await handle?.result({ timeout: "10s" }), "last");
  }
});

test("runs of a limited workflow have their turn in order, on whatever nodes they are", async (context) => {
  const { all, idOf } = await nodes(context, 2, workflows);
  const runs = [];
  for (const [at, node] of [...all, ...all].entries()) {
    const run = await node.client.start(narrow, `${at}`, { id: await idOf(node, `n${at}`) });
    runs.push(run);
    // Asked for after its turn is durable.
    if (at === 0) await until("it is at work", async () => (await run.describe()).status === "Waiting");
    else await until("it waits for its turn", async () => (await run.describe()).waitingFor !== undefined);
  }
  for (const [at, run] of runs.entries()) {
    await until("its turn has come", async () => (await run.describe()).status === "Waiting");
    for (const later of runs.slice(at + 1)) assert.equal((await later.describe()).status, "Scheduled");
    await run.send(Go);
    assert.equal(await run.result({ timeout: "10s" }), `${at}`);
  }
});
