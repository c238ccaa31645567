import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment, Gate } from "@wovyr/testing";
import { type Bank, Refused, wiring } from "../src/wire.ts";

/** A bank that executes an order when the gate opens, and remembers it. */
function bankBehind(gate: Gate<number, void>) {
  const executed = new Map<string, number>();
  const bank: Bank = {
    async wire(reference, amount) {
      await gate.body(amount, undefined as never);
      assert.ok(!executed.has(reference), "executed twice");
      executed.set(reference, amount);
      return `receipt ${executed.size}`;
    },
    find: async (reference) => (executed.has(reference) ? `found ${[...executed.keys()].indexOf(reference) + 1}` : undefined),
  };
  return { bank, executed };
}

test("an order that the bank refuses is sent again, and executed once", async () => {
  const seen: number[] = [];
  const bank: Bank = {
    async wire(_, amount) {
      seen.push(amount);
      if (seen.length < 3) throw new Refused("closed");
      return "receipt 1";
    },
    find: async () => undefined,
  };
  const wire = wiring(bank);
  await using env = await createTestEnvironment({ workflows: [wire] });
  assert.equal(await env.execute(wire, 100), "receipt 1");
  assert.deepEqual(seen, [100, 100, 100]);
});

test("after a crash the order is not sent again: the bank is asked what came of it", async () => {
  for (const wasExecuted of [true, false]) {
    const gate = new Gate<number, void>(String);
    const { bank, executed } = bankBehind(gate);
    const wire = wiring(bank);
    await using env = await createTestEnvironment({ workflows: [wire] });
    const run = await env.start(wire, 100);
    await gate.arrived();
    env.crash();
    if (wasExecuted) gate.open("100", undefined);
    await Promise.resolve();
    await env.restart();
    assert.equal(await run.result(), wasExecuted ? "found 1" : "not executed");
    assert.equal(executed.size, wasExecuted ? 1 : 0);
    assert.equal(gate.calls, 1);
    if (!wasExecuted) gate.fail("100", new Error("the process was gone"));
  }
});

test("a bank that does not answer is an unknown outcome as well", async () => {
  const gate = new Gate<number, void>(String);
  const { bank } = bankBehind(gate);
  const wire = wiring(bank);
  await using env = await createTestEnvironment({ workflows: [wire] });
  const run = await env.start(wire, 100);
  await gate.arrived();
  await env.advance("30s");
  assert.equal(await run.result(), "not executed");
  gate.fail("100", new Error("too late"));
});
