/** The engine itself, explored: workflows that together yield every effect there is, with every fault at every place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  activity,
  all,
  any,
  awaitEvent,
  CancelledError,
  child,
  compensateNow,
  event,
  type Flow,
  map,
  NonRetryableError,
  race,
  saga,
  select,
  settled,
  sideEffect,
  sleep,
  sleepUntil,
  spawn,
  step,
  Type,
  timeout,
  workflow,
} from "@wovyr/sdk";
import type { HistoryEvent } from "@wovyr/sdk/client";
import { delivery, type ExploreOptions, explore } from "@wovyr/testing";

const Note = event("note", Type.String());
const echo = activity("echo", async (value: string) => value);
const flaky = activity("flaky", { retry: { maxAttempts: 3, initialDelay: "1s", jitter: "none" } }, async (value: string, { attempt }) => {
  if (attempt < 3) throw new Error(`attempt ${attempt}`);
  return `${value} after ${attempt}`;
});
const broken = activity("broken", async (): Promise<string> => {
  throw new NonRetryableError("broken");
});
const kid = workflow("kid", async function* (name: string) {
  yield* sleep("1h");
  return yield* echo(`kid ${name}`);
});
const forgotten = workflow("forgotten", async function* () {
  yield* sleep("2h");
  return yield* echo("forgotten");
});

const interleavings = 40;

test("steps, retries, timers, side effects, variables and attributes stand every fault", async () => {
  const line = workflow("line", { variables: () => ({ at: 0 }) }, async function* (name: string, ctx) {
    const id = yield* sideEffect(() => "drawn once");
    ctx.variables.at = 1;
    const first = yield* flaky(name);
    ctx.attributes.stage = "second";
    const second = yield* step("second", () => `${first}!`);
    yield* sleepUntil(new Date(ctx.now().getTime() + 3_600_000));
    ctx.variables.at = 2;
    try {
      yield* broken();
    } catch (error) {
      return [id, second, (error as Error).message, ctx.variables.at];
    }
    return [];
  });
  await stands(line, "x", {
    invariant: ({ output }) =>
      assert.deepEqual(output, ["drawn once", "x after 3!", 'activity "broken" failed after 1 attempt: broken', 2]),
  });
});

test("branches of every kind stand every fault", async () => {
  const branches = workflow("branches", async function* () {
    const both = yield* all({ a: echo("a"), b: kidAfter("b") });
    const { value: either } = yield* any([broken(), echo("c")]);
    const outcomes = yield* settled([broken(), echo("d")]);
    const mapped = yield* map(["e", "f", "g"], (name) => echo(name), { concurrency: 2 });
    return [both, either, outcomes.map(({ status }) => status), mapped];
  });
  await stands(branches, undefined, {
    workflows: [kid],
    invariant: ({ output }) => assert.deepEqual(output, [{ a: "a", b: "kid b" }, "c", ["rejected", "fulfilled"], ["e", "f", "g"]]),
  });
});

const kidAfter = async function* (name: string) {
  yield* sleep("1m");
  return yield* child(kid, name);
};

test("races, timeouts and selections close their losers, whoever wins", async () => {
  const racing = workflow("racing", { variables: () => ({ log: [] as string[] }) }, async function* (_: undefined, ctx) {
    const { log } = ctx.variables;
    const branch = async function* (name: string) {
      try {
        yield* echo(name);
        yield* sleep("1h");
        log.push(`${name} went on`);
        return name;
      } finally {
        yield* step("clean-up", () => name);
        log.push(`${name} closed`);
      }
    };
    const { winner } = yield* race({ left: branch("left"), right: branch("right"), note: awaitEvent(Note) });
    const tasks = { one: yield* spawn(branch("one")), two: yield* spawn(branch("two")) };
    const picked = yield* select(tasks);
    yield* tasks[picked.winner === "one" ? "two" : "one"].cancel();
    let late = false;
    try {
      yield* timeout(branch("slow"), "30m");
    } catch {
      late = true;
    }
    return { winner, picked: picked.winner, late };
  });
  const winners = new Set<unknown>();
  await stands(racing, undefined, {
    events: [delivery(Note, "now")],
    invariant: ({ output, variables }) => {
      assert.ok(output?.late === true || output?.late === false);
      winners.add(output.winner);
      const { log } = variables as { log: string[] };
      // What a loser still cleaned up it cleaned up before the race was over, and what had not begun left no trace.
      const raced = log.slice(
        0,
        log.findIndex((line) => /one|two|slow/.test(line)),
      );
      const decided = raced.indexOf(`${output.winner} closed`);
      if (output.winner !== "note") assert.ok(decided >= 0, `the winner closed: ${log.join(", ")}`);
      assert.equal(new Set(log).size, log.length, `nothing happened twice: ${log.join(", ")}`);
    },
  });
  assert.ok(winners.has("note"));
});

test("events are taken once and in order, whenever they come", async () => {
  const reading = workflow("reading", async function* () {
    const notes: string[] = [yield* awaitEvent(Note)];
    yield* echo("in between");
    notes.push(yield* awaitEvent(Note, { timeout: "1000 days" }));
    yield* sleep("1m");
    notes.push(yield* awaitEvent(Note));
    return notes;
  });
  await stands(reading, undefined, {
    events: [delivery(Note, "1"), delivery(Note, "2"), delivery(Note, "3")],
    invariant: ({ output, status, failure }) => {
      if (status === "Completed") assert.deepEqual(output, ["1", "2", "3"]);
      else assert.match(failure.message, /did not arrive within/);
    },
  });
});

test("children are awaited, cancelled, terminated or left to themselves, each once", async () => {
  const family = workflow("family", async function* () {
    const awaited = yield* child(kid, "awaited");
    yield* race([child(kid, "cancelled", { onParentClose: "cancel" }), echo("faster")]);
    yield* spawn(child(kid, "terminated", { id: "terminated", onParentClose: "terminate" }));
    yield* spawn(child(forgotten, undefined, { id: "abandoned", onParentClose: "abandon" }));
    yield* echo("last");
    return awaited;
  });
  await stands(family, undefined, {
    workflows: [kid, forgotten],
    invariant: ({ output }) => assert.equal(output, "kid awaited"),
  });
});

test("a cancellation at any time unwinds every branch, and what it cleans up is done", async () => {
  const cancellable = workflow("cancellable", { variables: () => ({ open: 0 }) }, async function* (_: undefined, ctx) {
    const branch = async function* (name: string) {
      ctx.variables.open += 1;
      try {
        yield* echo(name);
        yield* sleep("1h");
      } finally {
        // A cancellation that comes now ends this step too.
        try {
          yield* step("close", () => name);
        } finally {
          ctx.variables.open -= 1;
        }
      }
    };
    yield* all([branch("a"), branch("b"), child(kid, "c")]);
    return "done";
  });
  const ends = new Set<string>();
  await stands(cancellable, undefined, {
    workflows: [kid],
    cancel: true,
    invariant: ({ status, variables, failure, history }) => {
      ends.add(status);
      // Clean-up that takes too long is dropped.
      if (history.some(({ type, data }) => type === "TimerFired" && String(data.effect).endsWith("!cleanup"))) return;
      assert.equal((variables as { open: number } | undefined)?.open ?? 0, 0);
      if (status === "Cancelled") assert.match(failure.name, new RegExp(CancelledError.name));
    },
  });
  assert.deepEqual([...ends].sort(), ["Cancelled", "Completed"]);
});

/** Effects that completed and have something that undoes them, and those that were undone; both in order. */
function undoneIn(history: readonly HistoryEvent[]): { readonly completed: readonly string[]; readonly undone: readonly string[] } {
  const completed: string[] = [];
  const undone: string[] = [];
  const undoes = new Map<unknown, string>();
  for (const { type, data } of history) {
    const effect = String(data.effect);
    if ((type === "ActivityCompleted" || type === "ChildCompleted") && !effect.startsWith("~")) completed.push(effect);
    if (type === "CompensationStarted")
      for (const planned of data.compensations as { effect: string; undoes: string }[]) undoes.set(planned.effect, planned.undoes);
    if (type === "CompensationCompleted") undone.push(undoes.get(effect) ?? "");
  }
  return { completed, undone };
}

test("what completed is undone once when the run ends badly, wherever it crashes and whenever it is cancelled", async () => {
  const leg = workflow("leg", { compensation: { on: "always" } }, async function* (name: string) {
    yield* echo(name).compensate((value) => echo(`no ${value}`));
    yield* sleep("1h");
    return name;
  });
  const undoing = workflow("undoing", { compensation: { on: "always" } }, async function* () {
    const undoes = (value: string) =>
      async function* () {
        yield* flaky(`no ${value}`);
        yield* sleep("1m");
      };
    yield* echo("first").compensate(undoes);
    yield* all([
      echo("second").compensate(undoes),
      child(leg, "leg", { onParentClose: "cancel" }).compensate((name) => echo(`no ${name}`)),
    ]);
    try {
      yield* saga(
        async function* () {
          yield* saga(echo("inner").compensate(undoes));
          yield* echo("outer").compensate((value) => echo(`no ${value}`));
          // Whoever loses has undone what it did.
          yield* race([saga(() => slowly("loser", undoes)), sleep("2h")]);
          yield* broken();
        },
        { order: "parallel" },
      );
    } catch (error) {
      if (error instanceof CancelledError) throw error;
    }
    yield* saga(async function* () {
      yield* echo("now").compensate(undoes);
      yield* compensateNow();
    });
    if ((yield* echo("last").compensate(undoes)) === "last") throw new Error("enough");
  });
  const ends = new Set<string>();
  await stands(undoing, undefined, {
    workflows: [leg],
    cancel: true,
    // A sample of the faults: there are many places.
    maxCases: 130,
    maxSteps: 2_000,
    invariant: ({ status, history }) => {
      ends.add(status);
      const { completed, undone } = undoneIn(history);
      assert.equal(new Set(undone).size, undone.length, `once each: ${undone.join(", ")}`);
      if (status === "Compensated") assert.deepEqual([...undone].sort(), [...completed].sort());
      else assert.deepEqual([status, completed], ["Cancelled", []]);
    },
  });
  assert.ok(ends.has("Compensated"));
});

const slowly = async function* (name: string, undoes: (value: string) => () => Flow<void>) {
  yield* echo(name).compensate(undoes);
  yield* sleep("1 day");
};

const stands = async <I, O>(definition: Parameters<typeof explore<I, O>>[0], input: I, options: ExploreOptions<O>) => {
  const explored = await explore<I, O>(definition, input as never, { interleavings, ...options });
  assert.ok(explored.cases > interleavings + explored.commits);
};
