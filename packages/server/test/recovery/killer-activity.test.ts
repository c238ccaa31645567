import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptsOf, endOfCase } from "./checks.ts";
import { freePort } from "./free-port.ts";
import { ground } from "./ground.ts";
import { patientClient } from "./load.ts";
import { executions } from "./record.ts";
import { supervise } from "./supervisor.ts";
import { until, within } from "./until.ts";
import { assassin, bystander } from "./workflows.ts";

test("H064 an activity that ends its process every time fails after five losses, and its neighbours complete", async (context) => {
  const place = await ground(context, "postgres");
  const port = await freePort();
  const supervisor = supervise(place, { port });
  const client = patientClient(`http://127.0.0.1:${port}`);
  const before = Array.from({ length: 6 }, (_, n) => client.start(bystander, 400 + n, { id: `a-${n}`, idempotencyKey: `a-${n}` }));
  await Promise.all(before);
  const bad = await client.start(assassin, undefined, { id: "bad", idempotencyKey: "bad" });
  const after = Array.from({ length: 6 }, (_, n) => client.start(bystander, 400 + n, { id: `z-${n}`, idempotencyKey: `z-${n}` }));
  const neighbours = await Promise.all([...before, ...after]);
  const results = await within("the neighbours", 60_000, Promise.all(neighbours.map((handle) => handle.result())));
  assert.deepEqual(
    results,
    [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5].map((n) => 400 + n),
  );
  const failure = await until("it failed", async () => (await bad.describe()).failure, 60_000, 50);
  assert.match(JSON.stringify(failure), /ATTEMPTS_LOST/);
  assert.equal(supervisor.endings.length, 5);
  assert.ok(supervisor.endings.every(({ signal }) => signal === "SIGKILL"));
  assert.match(supervisor.log(), /an activity that lost its process before runs alone/);
  await supervisor.stop();
  assert.equal(executions(place.directory).filter(({ name }) => name === "killer").length, 5);
  const ledger = await endOfCase(place);
  const badRun = ledger.runs.find(({ id }) => id === "bad")?.run ?? "";
  // Once more than makes their begin be recorded, for then they run beside it once more; it runs alone after that.
  for (const [key, { lost }] of attemptsOf(ledger))
    if (!key.startsWith(badRun)) assert.ok(lost <= 3, `${key} was lost ${lost} times, though it was another that ended the process`);
});
