import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, all, child, type Priority, workflow } from "@wovyr/sdk";
import { createTestEnvironment, Gate } from "@wovyr/testing";
import { fair, priority, type SchedulingStrategy } from "../../src/index.ts";
import { inCase, inEachCache } from "./case.ts";

/** What ends at once, and tells that it ran; and what holds the only place until it is let go. */
function oneByOne() {
  const gate = new Gate<string, string>();
  const ran: string[] = [];
  const hold = activity("hold", gate.body);
  const work = activity("work", async (id: string) => {
    ran.push(id);
    return id;
  });
  const holder = workflow("holder", async function* () {
    yield* hold("place");
  });
  return { gate, ran, work, holder };
}

const single = { activities: 1 };

test("when attempts wait for places, the most urgent is next, by what the call, the activity, the start or the parent says", async () => {
  const { gate, ran, work, holder } = oneByOne();
  const urgent = activity("urgent", { priority: "high" }, async (id: string) => void ran.push(id));
  const inner = workflow("inner", async function* (id: string) {
    yield* work(id);
  });
  const worker = workflow("worker", async function* (id: string) {
    yield* all([work(`${id} work`), work(`${id} low`).with({ priority: "low" }), urgent(`${id} urgent`), child(inner, `${id} child`)]);
  });
  await inEachCache({ workflows: [holder, worker, inner], limits: single, scheduling: priority() }, async (env) => {
    ran.length = 0;
    await env.start(holder);
    await gate.arrived("place");
    const runs = [await env.start(worker, "n"), await env.start(worker, "c", { priority: "critical" })];
    await env.settle();
    assert.equal((await runs[1]?.describe())?.activities.find(({ effect }) => effect === "0.0")?.priority, "critical");
    gate.open("place", "");
    await Promise.all(runs.map((run) => run.result()));
    assert.deepEqual(ran, ["c work", "c child", "n urgent", "c urgent", "n work", "n child", "n low", "c low"]);
  });
});

test("what a priority was is recorded: a run that is replayed by other code keeps it, and what begins then has the new one", async () => {
  const { gate, ran, holder } = oneByOne();
  const version = (said: Priority | undefined) => {
    const work = activity("work", { priority: said }, async (id: string) => void ran.push(id));
    return workflow("worker", async function* (id: string) {
      yield* work(`${id} first`);
      yield* work(`${id} second`);
    });
  };
  const [before, after] = [version("low"), version("high")];
  await inCase(
    { workflows: [holder, before], limits: single, scheduling: priority(), end: { skipReplay: ({ id }) => id === "old" } },
    async (env) => {
      await env.start(holder);
      await gate.arrived("place");
      const old = await env.start(before, "old", { id: "old" });
      await env.settle();
      env.crash();
      await env.restart({ workflows: [holder, after] });
      await env.until(() => env.engine.dispatch.waiting === 1);
      assert.equal((await env.state(old.id)).activities.get("0")?.priority, "low");
      const scheduled = () =>
        env.turns(old.id).then((turns) => turns.flatMap(({ events }) => events).filter(({ type }) => type === "ActivityScheduled"));
      gate.open("place", "");
      gate.open("place", "");
      await old.result();
      assert.deepEqual(
        (await scheduled()).map((fact) => (fact as { priority?: Priority }).priority),
        ["low", "high"],
      );
    },
  );
});

test("a priority that is the default is not recorded, and one that goes over a higher one is", async () => {
  const work = activity("work", async () => 1);
  const worker = workflow("worker", { priority: "high" }, async function* () {
    yield* work();
    yield* work().with({ priority: "normal" });
  });
  await inCase({ workflows: [worker] }, async (env) => {
    const run = await env.start(worker);
    await run.result();
    const facts = (await env.turns(run.id)).flatMap(({ events }) => events);
    assert.deepEqual(
      facts.flatMap((fact) => (fact.type === "ActivityScheduled" || fact.type === "InstanceStarted" ? [fact.priority] : [])),
      ["high", "high", undefined],
    );
    const low = await env.start(worker, undefined, { priority: "low" });
    await low.result();
    assert.equal(
      (await env.turns(low.id))[0]?.events.flatMap((fact) => (fact.type === "InstanceStarted" ? [fact.priority] : []))[0],
      "low",
    );
  });
});

test("H120 one backlog of 100,000 attempts does not delay the first attempt of another", async () => {
  const { gate, ran, work, holder } = oneByOne();
  const backlog = workflow("backlog", async function* () {
    yield* all(Array.from({ length: 1_000 }, (_, at) => work(`big ${at}`)));
  });
  const small = workflow("small", async function* () {
    yield* work("small");
  });
  const scheduling = fair({ by: ({ workflow }) => workflow });
  await using env = await createTestEnvironment({ workflows: [holder, backlog, small], limits: single, scheduling });
  await env.start(holder);
  await gate.arrived("place");
  await Promise.all(Array.from({ length: 100 }, () => env.start(backlog)));
  await env.until(() => env.engine.dispatch.waiting === 100_000);
  await env.start(small);
  await env.until(() => env.engine.dispatch.waiting === 100_001);
  gate.open("place", "");
  await env.until(() => ran.includes("small"));
  assert.ok(ran.indexOf("small") <= 1, `it was number ${ran.indexOf("small")}`);
});

test("a strategy that does not work is given up, and nothing is lost", async () => {
  const { gate, ran, work, holder } = oneByOne();
  const broken: SchedulingStrategy = {
    name: "broken",
    createQueue: () => {
      let size = 0;
      return {
        get size() {
          return size;
        },
        add: () => {
          size += 1;
        },
        take: () => {
          throw new Error("no idea");
        },
      };
    },
  };
  const worker = workflow("worker", async function* () {
    return yield* all([work("1"), work("2")]);
  });
  await inCase({ workflows: [holder, worker], limits: single, scheduling: broken }, async (env) => {
    await env.start(holder);
    await gate.arrived("place");
    const run = await env.start(worker);
    await env.settle();
    gate.open("place", "");
    assert.deepEqual(await run.result(), ["1", "2"]);
    assert.deepEqual(ran, ["1", "2"]);
    assert.ok(env.logs.some(({ message }) => message.includes('scheduling strategy "broken" does not work')));
  });
});

test("after a crash the order is that of what was recorded, and not that in which runs come back", async () => {
  const { ran, work } = oneByOne();
  const holds: (() => void)[] = [];
  const hold = activity("hold", () => new Promise<void>((end) => holds.push(end)));
  const holder = workflow("holder", async function* () {
    yield* hold();
  });
  const worker = workflow("worker", async function* (id: string) {
    yield* work(id);
  });
  await inCase({ workflows: [holder, worker], limits: single, scheduling: priority() }, async (env) => {
    await env.start(holder);
    await env.until(() => holds.length === 1);
    for (const said of ["low", "normal", "high", "critical"] as const) await env.start(worker, said, { id: said, priority: said });
    env.crash();
    await env.restart();
    await env.until(() => holds.length === 2);
    await env.settle();
    holds[1]?.();
    await env.until(() => ran.length === 4);
    // The place is given before all runs have been found.
    const order = ran.filter((id) => id !== ran[0] || ran[0] === "critical");
    assert.deepEqual(
      order,
      ["critical", "high", "normal", "low"].filter((id) => order.includes(id)),
    );
  });
});
