/** The case of both stores: an orchestrator that is asked to end, under load. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { endOfCase } from "./checks.ts";
import { freePort } from "./free-port.ts";
import { openGate } from "./gate.ts";
import { ground, type StoreKind } from "./ground.ts";
import { patientClient, startLoad } from "./load.ts";
import { executions } from "./record.ts";
import { until, within } from "./until.ts";
import { gatekeeper } from "./workflows.ts";

const grace = 1_000;

export async function closesUnderLoad(context: TestContext, kind: StoreKind): Promise<void> {
  const place = await ground(context, kind);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let host = place.host({ port, shutdownGrace: grace });
  await host.url;
  const load = startLoad(url, 20);
  const client = patientClient(url);
  const held = await Promise.all([0, 1, 2].map((n) => client.start(gatekeeper, `gate-${n}`, { id: `held-${n}` })));
  await until(
    "work is under way",
    () => load.completed > 20 && executions(place.directory).filter(({ name }) => name === "gated").length === 3,
  );
  for (let round = 0; round < 2; round += 1) {
    const next = place.host({ port, shutdownGrace: grace, prepared: true });
    const asked = performance.now();
    host.kill("SIGTERM");
    assert.deepEqual(await host.ended, { code: 0, signal: null }, host.log());
    const took = performance.now() - asked;
    assert.ok(took < grace + 3_000, `it took ${Math.round(took)} ms to end`);
    host = next;
    host.go();
    await host.url;
    const before = load.completed;
    await until("the load goes on", () => load.completed > before + 5);
  }
  for (const n of [0, 1, 2]) openGate(place.directory, `gate-${n}`);
  assert.deepEqual(await Promise.all(held.map((handle) => handle.result())), ["gate-0", "gate-1", "gate-2"]);
  const started = await within("the end of every run", 30_000, load.stop());
  host.kill("SIGTERM");
  await host.ended;
  const ledger = await endOfCase(place);
  assert.equal(ledger.runs.filter(({ id }) => /^load-\d+$/.test(id)).length, started);
  assert.ok(ledger.runs.every(({ status }) => status === "Completed"));
  const causes = [...ledger.turns.values()].flatMap((turns) =>
    turns.flatMap(({ events }) => events.flatMap((fact) => (fact.type === "AttemptLost" ? [fact.cause] : []))),
  );
  assert.ok(causes.length >= 6, "the held activities were given up twice");
  assert.ok(!causes.includes("crash"), "an attempt that was given up counts as lost");
}
