import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, awaitEvent, child, event, NonRetryableError, race, sleep, spawn, Type, workflow } from "@wovyr/sdk";
import { delivery, type ExplorationError, explore, fake } from "@wovyr/testing";

const Paid = event("paid", Type.Number());
const reserve = activity("reserve", async (id: string) => `place of ${id}`);
const charge = activity("charge", { retry: { maxAttempts: 3, initialDelay: "1s" } }, async (id: string, ctx) => {
  if (ctx.attempt === 1) throw new Error("busy");
  return `charge of ${id}`;
});
const ship = workflow("ship", async function* (id: string) {
  yield* sleep("1 day");
  return `sent ${id}`;
});
const order = workflow("order", { variables: () => ({ stage: "new" }) }, async function* (id: string, ctx) {
  const [place, amount] = yield* all([reserve(id), awaitEvent(Paid)]);
  ctx.variables.stage = "paid";
  const task = yield* spawn(child(ship, id));
  const receipt = yield* charge(id);
  return { place, amount, receipt, sent: yield* task };
});

test("a workflow that is right stands every fault at every commit and attempt, and every order", async () => {
  const stages: unknown[] = [];
  const explored = await explore(order, "7", {
    workflows: [ship],
    events: [delivery(Paid, 5)],
    interleavings: 40,
    invariant: (run) => {
      stages.push((run.variables as { stage: string }).stage);
      assert.deepEqual(run.output, { place: "place of 7", amount: 5, receipt: "charge of 7", sent: "sent 7" });
    },
  });
  assert.ok(explored.commits >= 8, `${explored.commits} commits`);
  assert.equal(explored.attempts, 3);
  assert.equal(explored.cases, 1 + 6 * explored.commits + 2 * explored.attempts + 40);
  assert.equal(stages.length, explored.cases);
  assert.deepEqual(new Set(stages), new Set(["paid"]));
  assert.equal(explored.sampled, false);
});

test("a race may end either way, as its invariant says, and both ends are seen", async () => {
  const winners = new Set<unknown>();
  const racing = workflow("racing", async function* () {
    return (yield* race({ paid: awaitEvent(Paid), late: sleep("14 days"), work: reserve("x") })).winner;
  });
  await explore(racing, undefined, {
    events: [delivery(Paid, 1)],
    interleavings: 30,
    invariant: ({ output }) => void winners.add(output),
  });
  assert.deepEqual([...winners].sort(), ["late", "paid", "work"]);
});

test("cancelled at any time, a transfer is undone or done, never half", async () => {
  let books = { from: 100, to: 0 };
  const take = activity("take", async () => {});
  const give = activity("give", async () => {});
  const giveBack = activity("giveBack", async () => {});
  const once = new Set<string>();
  const move = (change: () => void) => (_: unknown, ctx: { idempotencyKey: string }) => {
    if (!once.has(ctx.idempotencyKey)) change();
    once.add(ctx.idempotencyKey);
  };
  const transfer = workflow("transfer", async function* () {
    let taken = false;
    let given = false;
    try {
      yield* take();
      taken = true;
      yield* sleep("1h");
      yield* give();
      given = true;
    } finally {
      if (taken && !given) yield* giveBack();
    }
  });
  const states = new Set<string>();
  await explore(transfer, undefined, {
    cancel: true,
    interleavings: 60,
    fakes: () => {
      books = { from: 100, to: 0 };
      once.clear();
      return [
        fake(
          take,
          move(() => (books.from -= 10)),
        ),
        fake(
          give,
          move(() => (books.to += 10)),
        ),
        fake(
          giveBack,
          move(() => (books.from += 10)),
        ),
      ];
    },
    invariant: (run) => {
      states.add(run.status);
      if (run.status === "Completed") assert.deepEqual(books, { from: 90, to: 10 });
    },
  });
  assert.deepEqual([...states].sort(), ["Cancelled", "Completed"]);
});

test("a workflow whose outcome hangs on what a crash changes is caught, made small, and played again", async () => {
  let lives = 0;
  const count = activity("count", async () => {
    lives += 1;
    return lives;
  });
  const counting = workflow("counting", async function* () {
    yield* sleep("1h");
    return yield* count();
  });
  const options = {
    fakes: () => {
      lives = 0;
      return [];
    },
  };
  const failed = (await explore(counting, undefined, options).catch((error) => error)) as ExplorationError;
  assert.equal(failed.name, "ExplorationError");
  assert.match(failed.message, /the fault changes the outcome from Completed with 1 to Completed with 2/);
  assert.match(failed.message, /explore\.replay\("1:/);
  assert.match(failed.message, /activity count/);
  await assert.rejects(explore.replay(failed.seed, counting, undefined, options), { name: "ExplorationError", seed: failed.seed });
  await explore.replay("1", counting, undefined, options);
});

test("an invariant that an order breaks is found, and the order made as plain as it gets", async () => {
  const first = activity("first", async () => "first");
  const second = activity("second", async () => "second");
  const ordered = workflow("ordered", async function* () {
    const seen: string[] = [];
    const note = async function* (effect: ReturnType<typeof first | typeof second>) {
      seen.push(yield* effect);
    };
    yield* all([note(first()), note(second())]);
    return seen;
  });
  const failed = (await explore(ordered, undefined, {
    crashes: "none",
    invariant: ({ output }) => assert.deepEqual(output, ["first", "second"]),
  }).catch((error) => error)) as ExplorationError;
  assert.equal(failed.seed, "1:order-1");
  assert.match(failed.message, /the invariant does not hold/);
});

test("a workflow that can get stuck is caught with what it waits for", async () => {
  const stuck = workflow("stuck", async function* () {
    yield* awaitEvent(Paid);
  });
  await assert.rejects(explore(stuck, undefined), /explored will never end: .*event "paid"/);
});

test("code that is not deterministic is caught by the replays", async () => {
  let calls = 0;
  const wild = workflow("wild", async function* () {
    calls += 1;
    yield* reserve(calls % 2 === 0 ? "even" : "odd");
    yield* sleep("1h");
    return "done";
  });
  await assert.rejects(explore(wild, undefined), { name: "ExplorationError" });
});

test("a final failure is an outcome like any other", async () => {
  const failing = activity("failing", async () => {
    throw new NonRetryableError("no");
  });
  const fails = workflow("fails", async function* () {
    yield* failing();
  });
  const explored = await explore(fails, undefined, { interleavings: 10, invariant: (run) => assert.equal(run.status, "Failed") });
  assert.ok(explored.cases > 10);
  await explore(fails, undefined, { interleavings: 5 });
});

test("more faults than cases are allowed are sampled, and the bound holds", async () => {
  const explored = await explore(order, "7", { workflows: [ship], events: [delivery(Paid, 5)], maxCases: 20, interleavings: 5 });
  assert.deepEqual([explored.cases, explored.sampled], [20, true]);
});

test("options and seeds that cannot be are refused", async () => {
  await assert.rejects(explore(order, "7", { interleavings: -1 }), { code: "INVALID_OPTION" });
  await assert.rejects(explore(order, "7", { maxCases: 0 }), { code: "INVALID_OPTION" });
  for (const seed of ["", "x", "1:crash-somewhere-1", "1:order-", "1:order-a"])
    await assert.rejects(explore.replay(seed, order, "7"), { code: "INVALID_OPTION" });
});
