import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createOrchestrator } from "../../src/index.ts";
import { endOfCase } from "./checks.ts";
import { ground, type StoreKind } from "./ground.ts";
import { logLines } from "./log-lines.ts";
import { letTimePass } from "./overdue.ts";
import { countBy, executions } from "./record.ts";
import { within } from "./until.ts";
import { sleeper, workflows } from "./workflows.ts";

const week = 7 * 24 * 3_600_000;
const hour = 3_600_000;

for (const kind of ["pglite", "postgres"] as const)
  test(`H004 ${kind}: timers that were due while everything was down fire once, with their due time`, (context) => overdue(context, kind));

async function overdue(context: TestContext, kind: StoreKind): Promise<void> {
  const place = await ground(context, kind);
  process.env.WOVYR_TEST_RECORD = place.directory;
  const options = { workflows, store: place.provider, log: logLines().log };
  const first = await createOrchestrator(options);
  const count = 25;
  for (let n = 0; n < count; n += 1) await first.client.start(sleeper, hour + n, { id: `s-${n}` });
  await first.client.start(sleeper, 3 * week, { id: "later" });
  await first.close();
  await letTimePass(place, week);
  const began = Date.now();
  const second = await createOrchestrator(options);
  context.after(() => second.close());
  const awake = await within(
    "that every overdue sleeper wakes",
    15_000,
    Promise.all(Array.from({ length: count }, (_, n) => second.client.handle(sleeper, `s-${n}`).result())),
  );
  assert.equal((await second.client.handle("later").describe()).status, "Waiting");
  await second.close();
  assert.ok([...countBy(executions(place.directory), ({ key }) => key).values()].every((times) => times === 1));
  const { turns, runs } = await endOfCase(place);
  for (const { run, id } of runs) {
    if (id === "later") continue;
    const facts = (turns.get(run) ?? []).flatMap((turn) => turn.events.map((fact) => ({ fact, at: turn.at })));
    const due = facts.flatMap(({ fact }) => (fact.type === "TimerStarted" ? [fact.due] : []));
    const fired = facts.flatMap(({ fact, at }) => (fact.type === "TimerFired" ? [{ due: fact.due, at }] : []));
    assert.deepEqual(
      fired.map((timer) => timer.due),
      due,
      "it fires once, with its due time",
    );
    assert.ok(fired.every(({ at, due: wanted }) => at >= wanted && at >= began && wanted < began - week / 2));
  }
  assert.ok(awake.every((at) => at >= began));
}
