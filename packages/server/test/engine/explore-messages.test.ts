/** Handlers, conditions, shields, changes and runs that go on as new ones: with every fault at every place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, awaitEvent, condition, event, patched, shield, sleep, Type, workflow } from "@wovyr/sdk";
import { delivery, explore } from "@wovyr/testing";

const Item = event("item", Type.Number());
const Stop = event("stop");
const echo = activity("echo", async (value: number) => value);

test("handlers, conditions and shields stand every fault, and lose no event", async () => {
  const cart = workflow("cart", { variables: () => ({ items: [] as number[], left: false }) }, async function* (_: undefined, ctx) {
    ctx.on(Item, async function* (item) {
      ctx.variables.items.push(yield* echo(item));
    });
    try {
      yield* condition(() => ctx.variables.items.length >= 2);
      yield* shield(async function* () {
        yield* sleep("1m");
        yield* echo(0);
      });
      yield* awaitEvent(Stop);
      yield* condition(() => ctx.handlersFinished);
      return [...ctx.variables.items].sort();
    } finally {
      ctx.variables.left = true;
    }
  });
  const ends = new Set<string>();
  await explore(cart, undefined, {
    events: [delivery(Item, 1), delivery(Item, 2), delivery(Item, 3), delivery(Stop)],
    cancel: true,
    interleavings: 60,
    invariant: ({ status, output, variables }) => {
      ends.add(status);
      if (status === "Completed") assert.deepEqual(output, [1, 2, 3]);
      else assert.equal((variables as { left: boolean } | undefined)?.left ?? true, true);
    },
  });
  assert.deepEqual([...ends].sort(), ["Cancelled", "Completed"]);
});

test("a chain of runs stands every fault, and takes every event once and in order", async () => {
  const chain = workflow("chain", { input: Type.Array(Type.Number()) }, async function* (seen, ctx) {
    const first = yield* awaitEvent(Item);
    yield* echo(first);
    const now = [...seen, first];
    if (now.length === 4) return now;
    return yield* ctx.continueAsNew(now);
  });
  await explore(chain, [], {
    events: [1, 2, 3, 4].map((n) => delivery(Item, n)),
    interleavings: 60,
    invariant: ({ output }) => assert.deepEqual(output, [1, 2, 3, 4]),
  });
});

test("a changed workflow stands every fault", async () => {
  const changing = workflow("changing", async function* () {
    const first = (yield* patched("one")) ? yield* echo(1) : yield* echo(-1);
    yield* sleep("1h");
    const second = (yield* patched("two")) ? yield* echo(2) : yield* echo(-2);
    return [first, second, yield* patched("one")];
  });
  await explore(changing, undefined, { interleavings: 20, invariant: ({ output }) => assert.deepEqual(output, [1, 2, true]) });
});
