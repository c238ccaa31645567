import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, sideEffect, sleep, Type, ValidationError, workflow } from "@wovyr/sdk";
import { type HistoryEvent, type Turn, turnsOf } from "@wovyr/sdk/internal";
import { inCase } from "./case.ts";

const Go = event("go", Type.Object({ at: Type.Unsafe<Date>(Type.Any()) }));
const echo = activity("echo", async (value: unknown) => value);
const fails = activity("fails", { retry: { maxAttempts: 2, initialDelay: 5 } }, async () => {
  throw Object.assign(new RangeError("no"), { limit: 3n, cause: new Error("deeper") });
});
const kid = workflow("kid", async function* (n: number) {
  return n + 1;
});
const everything = workflow("everything", { variables: () => ({ seen: new Set<string>() }) }, async function* (input: { on?: Date }, ctx) {
  ctx.variables.seen.add("start");
  ctx.attributes.colour = "red";
  const [got] = yield* all([awaitEvent(Go), echo(undefined), sleep("1 day"), child(kid, 1)]);
  yield* sideEffect(() => undefined);
  try {
    yield* fails();
  } catch {
    ctx.variables.seen.add("failed");
  }
  return { got, on: input.on };
});

const plain = (turns: readonly Turn[]) => turns.map(({ seq, at, events }) => ({ seq, at, events }));

test("a history as the API shows it holds all that the stored one holds", async () => {
  await inCase({ workflows: [everything, kid] }, async (env) => {
    const run = await env.start(everything, { on: new Date(5) });
    await run.send(Go, { at: new Date(7) });
    await run.result();
    assert.deepEqual(plain(turnsOf(await env.history(run.id))), plain(await env.turns(run.id)));
  });
});

test("plain JSON of a history keeps its events, and payloads as far as JSON has them", async () => {
  await inCase({ workflows: [everything, kid] }, async (env) => {
    const run = await env.start(everything, {});
    await run.send(Go, { at: new Date(7) });
    await run.result();
    const events = JSON.parse(
      JSON.stringify(
        (await env.history(run.id)).filter(({ data }) => !("failure" in data)),
        (_, value) => (typeof value === "bigint" ? String(value) : value),
      ),
    );
    const numbered = (events as HistoryEvent[]).map((entry, index) => ({ ...entry, seq: index + 1, turn: index + 1 }));
    const types = turnsOf(numbered).flatMap((turn) => turn.events.map((fact) => fact.type));
    assert.deepEqual(
      types,
      numbered.map((entry) => entry.type),
    );
    assert.ok(turnsOf(numbered).every((turn) => Number.isFinite(turn.at)));
  });
});

test("what is no history is refused with the item that is wrong", () => {
  const good = { seq: 1, turn: 1, type: "Resumed", at: new Date(0), data: {} };
  const refused = (items: unknown[], message: RegExp) =>
    assert.throws(
      () => turnsOf(items as HistoryEvent[]),
      (error) => error instanceof ValidationError && message.test(error.message),
    );
  assert.equal(turnsOf([good]).length, 1);
  refused([null], /item 0 is no event/);
  refused([{ ...good, data: undefined }], /item 0 lacks/);
  refused([{ ...good, seq: 5 }], /item 0 has number 5 where 1 belongs/);
  refused([good, { ...good, seq: 3 }], /item 1 has number 3 where 2 belongs/);
  refused([{ ...good, turn: 0 }], /item 0 names no turn/);
  refused([{ ...good, at: "yesterday" }], /item 0 has no time/);
});
