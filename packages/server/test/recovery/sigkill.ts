/** The case of both stores: the process is killed again and again at random moments while callers work through HTTP. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { attemptsOf, endOfCase } from "./checks.ts";
import { freePort } from "./free-port.ts";
import { ground, type StoreKind } from "./ground.ts";
import { startLoad } from "./load.ts";
import { executions } from "./record.ts";
import { seeded } from "./seeded.ts";
import { within } from "./until.ts";

/** On a machine that is slow to start processes the killing ends earlier. */
const killingTime = 100_000;

export async function killedUnderLoad(context: TestContext, kind: StoreKind, { kills = 20, databases = 1 } = {}): Promise<void> {
  const random = seeded(`${kind} under SIGKILL`);
  const place = await ground(context, kind, databases);
  const port = await freePort();
  let host = place.host({ port });
  let next = place.host({ port, prepared: true });
  await host.url;
  const load = startLoad(`http://127.0.0.1:${port}`, 30);
  const began = performance.now();
  let killed = 0;
  while (killed < kills && performance.now() - began < killingTime) {
    // Mostly under load, now and then while it is still starting.
    if (random.fraction() < 0.85) await host.url;
    await pause(random.whole(800));
    await host.destroy();
    host = next;
    host.go();
    killed += 1;
    next = place.host({ port, prepared: true });
  }
  await host.url;
  const started = await within("the end of every run", 40_000, load.stop());
  host.kill("SIGTERM");
  assert.deepEqual(await host.ended, { code: 0, signal: null });
  const ledger = await endOfCase(place);
  const own = ledger.runs.filter(({ id }) => /^load-\d+$/.test(id));
  assert.equal(own.length, started, "a run per key");
  assert.ok(ledger.runs.every(({ status }) => status === "Completed"));
  const lost = [...ledger.turns.values()]
    .flatMap((turns) => turns.flatMap(({ events }) => events))
    .filter(({ type }) => type === "AttemptLost");
  const most = Math.max(0, ...[...attemptsOf(ledger).values()].map(({ lost }) => lost));
  console.log(
    `${kind}: ${started} runs (${ledger.runs.length} with their children), ${executions(place.directory).length} executions, ${lost.length} attempts lost in ${killed} kills, one of them ${most} times`,
  );
}
