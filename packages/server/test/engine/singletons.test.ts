import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, child, event, sleep, Type, workflow } from "@wovyr/sdk";
import { Gate } from "@wovyr/testing";
import { inCase } from "./case.ts";

const Changed = event("changed", Type.Object({ customer: Type.String() }));

function singleton(onConflict: "skip" | "cancel") {
  const gate = new Gate<string, string>();
  const work = activity("work", gate.body);
  const sync = workflow(
    "sync",
    { singleton: { key: ({ customer }: { customer: string }) => customer, onConflict }, triggers: [Changed] },
    async function* ({ customer }: { customer: string }) {
      return yield* work(customer);
    },
  );
  return { gate, sync };
}

test("a start of a singleton returns the run that is open; one with another key begins", async () => {
  const { gate, sync } = singleton("skip");
  await inCase({ workflows: [sync] }, async (env) => {
    const [first, again, other] = [
      await env.start(sync, { customer: "a" }),
      await env.start(sync, { customer: "a" }),
      await env.start(sync, { customer: "b" }),
    ];
    assert.equal(again.runId, first.runId);
    assert.notEqual(other.runId, first.runId);
    await env.until(() => gate.waiting.length === 2);
    gate.open("a", "1");
    gate.open("b", "2");
    assert.deepEqual([await again.result(), await other.result()], ["1", "2"]);
    const next = await env.start(sync, { customer: "a" });
    assert.notEqual(next.runId, first.runId);
    await env.until(() => gate.waiting.length === 1);
    gate.open("a", "3");
    assert.equal(await next.result(), "3");
  });
});

test("many starts at once make one run", async () => {
  const { gate, sync } = singleton("skip");
  await inCase({ workflows: [sync] }, async (env) => {
    const handles = await Promise.all(Array.from({ length: 20 }, () => env.start(sync, { customer: "a" })));
    assert.equal(new Set(handles.map(({ runId }) => runId)).size, 1);
    await gate.arrived("a");
    gate.open("a", "1");
    await handles[0]?.result();
  });
});

test("a publication triggers a singleton only where none is open", async () => {
  const { gate, sync } = singleton("skip");
  await inCase({ workflows: [sync] }, async (env) => {
    await env.publish(Changed, { customer: "a" });
    await env.publish(Changed, { customer: "a" });
    await gate.arrived("a");
    await env.settle();
    assert.deepEqual(gate.waiting, ["a"]);
    gate.open("a", "1");
    await env.client.handle("singleton~sync~a").result();
  });
});

test("with cancel the run that is open is cancelled, and a start takes its place", async () => {
  const { gate, sync } = singleton("cancel");
  await inCase({ workflows: [sync] }, async (env) => {
    const first = await env.start(sync, { customer: "a" });
    await gate.arrived("a");
    const second = await env.start(sync, { customer: "a" });
    assert.notEqual(second.runId, first.runId);
    assert.equal((await env.state(first.id, first.runId)).status, "Cancelled");
    await env.until(() => gate.waiting.length === 2);
    gate.open("a", "nobody hears it");
    gate.open("a", "2");
    assert.equal(await second.result(), "2");
  });
});

test("one that does not end in time is said to be busy; asked again, its place is taken", async () => {
  const slow = workflow("slow", { singleton: { onConflict: "cancel" } }, async function* (n: number) {
    try {
      yield* sleep("1d");
    } finally {
      if (n === 1) yield* sleep("6s");
    }
  });
  await inCase({ workflows: [slow] }, async (env) => {
    await env.start(slow, 1);
    await assert.rejects(env.start(slow, 2), { code: "SINGLETON_BUSY", retryable: true });
    const second = await env.start(slow, 2);
    await second.cancel();
  });
});

test("its id follows from its key; another one is refused", async () => {
  const { sync } = singleton("skip");
  const alone = workflow("alone", { singleton: {} }, async function* () {
    return 1;
  });
  await inCase({ workflows: [sync, alone] }, async (env) => {
    await assert.rejects(env.start(sync, { customer: "a" }, { id: "mine" }), { code: "INVALID_OPTION", message: /singleton~sync~a/ });
    const run = await env.start(alone);
    assert.equal(run.id, "singleton~alone~");
    await run.result();
  });
});

test("a child that is a singleton fails when one is open", async () => {
  const { gate, sync } = singleton("skip");
  const parent = workflow("parent", async function* () {
    try {
      return yield* child(sync, { customer: "a" });
    } catch (error) {
      return (error as { code: string }).code;
    }
  });
  await inCase({ workflows: [sync, parent] }, async (env) => {
    const open = await env.start(sync, { customer: "a" });
    await gate.arrived("a");
    assert.equal(await env.execute(parent), "INSTANCE_EXISTS");
    gate.open("a", "1");
    await open.result();
    const next = await env.start(parent);
    await env.until(() => gate.waiting.length === 1);
    gate.open("a", "child");
    assert.equal(await next.result(), "child");
  });
});

test("neither a fork nor another workflow's start makes a second one", async () => {
  const { gate, sync } = singleton("skip");
  const simple = workflow("simple", async function* () {});
  await inCase({ workflows: [sync, simple] }, async (env) => {
    const open = await env.start(sync, { customer: "a" });
    await gate.arrived("a");
    await assert.rejects(open.fork(), { code: "INSTANCE_EXISTS" });
    await assert.rejects(env.start(simple, undefined, { id: "singleton~sync~b" }), { code: "INVALID_OPTION" });
    gate.open("a", "1");
    await open.result();
  });
});
