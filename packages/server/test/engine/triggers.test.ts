/** What publishing starts: one instance of every workflow that names the event, once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { event, Type, type ValidationError, workflow } from "@wovyr/sdk";
import { StoreUnavailableError } from "../../src/internal.ts";
import { inCase, inEachCache } from "./case.ts";

const Signup = event("signup", Type.Object({ name: Type.String() }));

const greet = workflow("greet", { triggers: [Signup] }, async function* ({ name }: { name: string }) {
  return `hello ${name}`;
});
const count = workflow(
  "count",
  { input: Type.Object({ name: Type.String({ maxLength: 5 }) }), triggers: [Signup] },
  async function* ({ name }) {
    return name.length;
  },
);

test("a publication starts one instance of each workflow that it triggers, with the payload as input", async () => {
  await inEachCache({ workflows: [greet, count] }, async (env) => {
    const published = await env.publish(Signup, { name: "Ada" }, { key: "a" });
    assert.deepEqual(published.started.map(({ workflow: name }) => name).sort(), ["count", "greet"]);
    const outputs = await Promise.all(
      published.started.map(async ({ workflow: name, id }) => [name, await env.client.handle(id).result()] as const),
    );
    assert.deepEqual(
      new Map(outputs),
      new Map<string, unknown>([
        ["greet", "hello Ada"],
        ["count", 3],
      ]),
    );
    assert.equal((await env.publish(Signup, { name: "Ada" })).started.length, 2, "another publication starts others");
  });
});

test("said again, a publication starts nothing twice and answers with what it had started", async () => {
  await inEachCache({ workflows: [greet, count] }, async (env) => {
    const first = await env.publish(Signup, { name: "Ada" }, { idempotencyKey: "s1" });
    await env.settle();
    await env.restart();
    const again = await env.publish(Signup, { name: "Ada" }, { idempotencyKey: "s1" });
    assert.deepEqual(again, { ...first, replayed: true });
    assert.equal((await env.bareStore.listInstances("default", {}, { limit: 10 })).length, 2);
  });
});

test("inputs are checked before anything is written: one that does not fit stops them all", async () => {
  await inCase({ workflows: [greet, count] }, async (env) => {
    const refused = (error: unknown) => (error as ValidationError).code === "INVALID_INPUT" && /"count"/.test(String(error));
    await assert.rejects(env.publish(Signup, { name: "Margaret" }, { idempotencyKey: "s1" }), refused);
    await assert.rejects(env.publish(Signup, { name: 5 } as never), { code: "INVALID_INPUT" });
    assert.deepEqual(await env.bareStore.listInstances("default", {}, { limit: 10 }), []);
    const later = await env.publish(Signup, { name: "Ada" }, { idempotencyKey: "s1" });
    assert.equal(later.replayed, false, "the key of what was refused is free");
  });
});

test("the newest version says what triggers it", async () => {
  const old = workflow("greet", { version: "1", triggers: [Signup] }, async function* (_: { name: string }) {
    return "old";
  });
  const now = workflow("greet", { version: "2", triggers: [Signup] }, async function* (_: { name: string }) {
    return "new";
  });
  const silent = workflow("greet", { version: "3" }, async function* () {});
  await inCase({ workflows: [old, now] }, async (env) => {
    const { started } = await env.publish(Signup, { name: "Ada" });
    assert.equal(started.length, 1);
    assert.equal(await env.client.handle(started[0]?.id ?? "").result(), "new");
    await env.restart({ workflows: [old, now, silent] });
    assert.deepEqual((await env.publish(Signup, { name: "Ada" })).started, []);
  });
});

test("said again, an interrupted publication starts what it had left out", async () => {
  await inCase({ workflows: [greet, count] }, async (env) => {
    const store = env.bareStore;
    const publish = store.publish.bind(store);
    let lost = 0;
    // The publication is durable, and its publisher never learns of it.
    store.publish = async (publication) => {
      const outcome = await publish(publication);
      lost += 1;
      if (lost === 1) throw new StoreUnavailableError("the connection broke after the commit");
      return outcome;
    };
    const { started } = await env
      .publish(Signup, { name: "Ada" }, { idempotencyKey: "s1" })
      .catch(async () => env.publish(Signup, { name: "Ada" }, { idempotencyKey: "s1" }));
    assert.ok(lost >= 2);
    assert.equal(started.length, 2);
    await env.settle();
    assert.equal((await store.listInstances("default", {}, { limit: 10 })).length, 2);
  });
});
