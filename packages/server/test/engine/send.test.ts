import assert from "node:assert/strict";
import { test } from "node:test";
import { ActivityError, type ApiError, awaitEvent, child, event, send, sleep, spawn, Type, ValidationError, workflow } from "@wovyr/sdk";
import { explore } from "@wovyr/testing";
import { inEachCache } from "./case.ts";

const Ping = event("ping", Type.Object({ from: Type.String() }));
const Pong = event("pong", Type.String());

const answering = workflow("answering", async function* () {
  const { from } = yield* awaitEvent(Ping);
  yield* send(from, Pong, "pong");
  return from;
});
const asking = workflow("asking", async function* (_: undefined, ctx) {
  const other = yield* spawn(child(answering, undefined, { id: `${ctx.id}-other` }));
  yield* sleep("1m");
  yield* send(`${ctx.id}-other`, Ping, { from: ctx.id });
  const answer = yield* awaitEvent(Pong);
  return [answer, yield* other];
});

test("runs send each other events, each once", async () => {
  await inEachCache({ workflows: [asking, answering], end: { everyAttemptExecuted: true } }, async (env) => {
    assert.deepEqual(await env.execute(asking, undefined, { id: "a" }), ["pong", "a"]);
  });
});

test("a run may send to itself, and what cannot be delivered is an error with its code", async () => {
  const selfish = workflow("selfish", async function* (_: undefined, ctx) {
    yield* send(ctx.id, Pong, "to myself");
    const codes: unknown[] = [yield* awaitEvent(Pong)];
    for (const id of ["nobody", "closed"])
      try {
        yield* send(id, Pong, "x", { onExhausted: "fail" });
      } catch (error) {
        if (error instanceof ActivityError) codes.push((error.cause as ApiError).code, error.attempts);
      }
    try {
      yield* send("nobody", Ping, { from: 5 } as never);
    } catch (error) {
      codes.push(error instanceof ValidationError);
    }
    return codes;
  });
  const closed = workflow("closed", async function* () {});
  await inEachCache({ workflows: [selfish, closed] }, async (env) => {
    await env.execute(closed, undefined, { id: "closed" });
    assert.deepEqual(await env.execute(selfish), ["to myself", "INSTANCE_NOT_FOUND", 1, "INSTANCE_CLOSED", 1, true]);
  });
});

test("whatever crashes, an event that a run sends arrives once", async () => {
  const once = workflow("once", async function* (_: undefined, ctx) {
    yield* send(ctx.id, Pong, "first");
    const got = [yield* awaitEvent(Pong)];
    try {
      got.push(yield* awaitEvent(Pong, { timeout: "1h" }));
    } catch {
      got.push("no other");
    }
    return got;
  });
  await explore(once, undefined, { interleavings: 30, invariant: ({ output }) => assert.deepEqual(output, ["first", "no other"]) });
});

test("what send cannot take is refused at once", () => {
  assert.throws(() => send("bad id", Pong, "x"), { code: "INVALID_NAME" });
  assert.throws(() => send("id", {} as never, "x" as never), { code: "INVALID_OPTION" });
  assert.throws(() => send("id", Pong, 5 as never), ValidationError);
  assert.ok(send("id", Pong, "x", { retry: { maxAttempts: 1 } }));
});
