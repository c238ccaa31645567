import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, type Flow, race, sideEffect, sleep, spawn, timeout, workflow } from "@wovyr/sdk";
import type { HistoryEvent } from "@wovyr/sdk/internal";
import { createTestEnvironment, replay, SeededRandom } from "@wovyr/testing";

/** A program as data: what it yields, one after another. */
type Op = { readonly kind: (typeof kinds)[number]; readonly n: number; readonly inner: readonly (readonly Op[])[] };

const leaves = ["act", "act", "act", "sleep", "event", "child", "side"] as const;
const kinds = [...leaves, "all", "race", "timeout", "spawn", "cleanUp"] as const;

const acts = ["a", "b", "c", "d"].map((name) =>
  activity(name, { retry: { maxAttempts: 1 } }, async (n: number) => {
    if (name === "d" && n % 2 === 1) throw new Error("odd");
    return n;
  }),
);
const events = [event("first"), event("second")];
const sub = workflow("sub", async function* (n: number) {
  yield* sleep("1s");
  return n;
});

async function* perform(ops: readonly Op[]): Flow<unknown> {
  let value = 0;
  for (const { kind, n, inner } of ops) {
    const branches = inner.map((branch) => () => perform(branch));
    const [only = () => perform([])] = branches;
    if (kind === "act") value = yield* (acts[n] ?? acts[0] ?? assert.fail())(value + n);
    else if (kind === "sleep") yield* sleep(n * 1_000);
    else if (kind === "event") yield* awaitEvent(events[n % 2] ?? assert.fail());
    else if (kind === "child") value = yield* child(sub, n);
    else if (kind === "side") value = yield* sideEffect(() => 3);
    else if (kind === "all") yield* all(branches);
    else if (kind === "race") yield* race(branches);
    else if (kind === "timeout") yield* timeout(only, "2s");
    else if (kind === "spawn") yield* spawn(only);
    else {
      try {
        yield* only();
      } finally {
        yield* (acts[0] ?? assert.fail())(7);
      }
    }
  }
  return value;
}

const program = (ops: readonly Op[]) =>
  workflow("program", async function* () {
    return yield* perform(ops);
  });

class Dice extends SeededRandom {
  op(depth: number): Op {
    const kind = this.pick(depth > 0 ? kinds : leaves);
    const width = kind === "all" || kind === "race" ? 1 + this.below(3) : 1;
    const inner = (leaves as readonly string[]).includes(kind) ? [] : Array.from({ length: width }, () => this.ops(depth - 1, 2));
    return { kind, n: this.below(4), inner };
  }
  ops(depth: number, most: number): Op[] {
    return Array.from({ length: 1 + this.below(most) }, () => this.op(depth));
  }
  changed(ops: readonly Op[]): Op[] {
    const at = this.below(ops.length);
    return this.pick([ops.toSpliced(at, 0, this.op(1)), ops.toSpliced(at, 1), ops.toSpliced(at, 1, this.op(1)), ops.toReversed()]);
  }
  /** The events with something about one of them wrong. */
  garbled(history: readonly HistoryEvent[]): HistoryEvent[] {
    const at = this.below(history.length);
    const item = history[at] ?? assert.fail();
    const data = {
      ...item.data,
      [this.pick(Object.keys(item.data).concat("effect"))]: this.pick([null, undefined, 0, "", "0", {}, [], new Date(Number.NaN)]),
    };
    const { type } = this.pick(history);
    const without = history.toSpliced(at, 1).map((event, index) => ({ ...event, seq: index + 1, turn: Math.min(event.turn, index + 1) }));
    return this.pick([history.with(at, { ...item, data }), history.with(at, { ...item, type }), history.with(at, null as never), without]);
  }
}

const seed = Number(process.env.SEED ?? 1);

test("random programs: unchanged they replay, changed they are told with a line and a difference, and garbled histories end no check", async (t) => {
  t.diagnostic(`seed ${seed}`);
  const dice = new Dice(seed);
  let diverged = 0;
  for (let round = 0; round < 60; round++) {
    const ops = dice.ops(2, 7);
    await using env = await createTestEnvironment({ workflows: [program(ops), sub], seed: round + 1 });
    const { id, runId } = await env.start(program(ops));
    for (let step = 0; step < 8; step++) {
      await env.advance(dice.below(4) * 1_000);
      if ((await env.state(id)).closed) break;
      await env.handle(program(ops), id).send(dice.pick(events));
      await env.settle();
      if (dice.below(20) === 0 && !(await env.state(id)).closed) await env.handle(program(ops), id).cancel();
    }
    await env.settle();
    const history = await env.history(id);
    assert.equal((await replay([program(ops), sub], history, { runId })).text, "1 history checked: all replay.", JSON.stringify(ops));
    for (let change = 0; change < 5; change++) {
      const changed = dice.changed(ops);
      const { text, divergences, runs } = await replay([program(changed), sub], history, { runId });
      assert.equal(runs[0]?.problem, undefined, text);
      for (const { divergence } of divergences) {
        diverged += 1;
        if (changed.length > 0) assert.match(divergence.at ?? "", /replay-random\.test\.ts:\d+:\d+$/, text);
        assert.match(divergence.diff, /^[-+] |the same effects/m, text);
        assert.ok(divergence.diff.split("\n").length < 60);
      }
      await replay([program(ops), sub], dice.garbled(history), { runId });
    }
  }
  assert.ok(diverged > 100);
});
