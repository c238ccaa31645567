/**
 * Three orchestrators and two workers over one Postgres, at work while processes are killed, frozen and drained, networks fail, and the database restarts.
 *
 * 1. Every start that was acknowledged ends with its result, once; histories agree with the model of the language, and `endOfCase` holds.
 * 2. WOVYR_TEST_SEED repeats the order of what happens; the moments are the machine's.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { endOfCase } from "../recovery/checks.ts";
import { patientClient, startLoad } from "../recovery/load.ts";
import { executions } from "../recovery/record.ts";
import { seeded } from "../recovery/seeded.ts";
import { within } from "../recovery/until.ts";
import { runErrands } from "./errands.ts";
import { mishap, mishapKinds } from "./mishaps.ts";
import { agreesWithModel, runPrograms } from "./programs.ts";
import { chaosStage } from "./stage.ts";

/** Milliseconds. */
const duration = 30_000;

test("whatever fails, nothing is lost and nothing is doubled", async (context) => {
  const random = seeded("chaos");
  const stage = await chaosStage(context, { nodes: 3, workers: 2 });
  const urls = stage.nodes.map(({ url }) => url);
  const load = startLoad(urls, 15);
  const clients = urls.map(patientClient);
  const programs = runPrograms(clients, random);
  const errands = runErrands(clients, 5);
  const happened: string[] = [];
  const began = performance.now();
  // Each kind once, in a random order; then any.
  const left = [...mishapKinds];
  while (left.length > 0 || performance.now() - began < duration) {
    const kind = left.splice(random.whole(left.length), 1)[0] ?? mishapKinds[random.whole(mishapKinds.length)];
    if (kind === undefined) break;
    happened.push(await mishap(kind, stage, random));
    await pause(random.whole(1_000));
  }
  const started = await within("the end of every run", 60_000, load.stop());
  const sent = await within("the end of every errand", 60_000, errands.stop());
  const made = await within("the end of every program", 60_000, programs.stop());
  for (const { host } of stage.nodes) host.kill("SIGTERM");
  for (const { host } of stage.nodes) assert.deepEqual(await host.ended, { code: 0, signal: null }, host.log());
  const ledger = await endOfCase(stage);
  const own = ledger.runs.filter(({ id }) => /^load-\d+$/.test(id));
  assert.equal(own.length, started, "a run per key");
  assert.ok(own.every(({ status }) => status === "Completed"));
  const done = ledger.runs.filter(({ id, status }) => /^errand-\d+$/.test(id) && status === "Completed");
  assert.equal(done.length, sent, "an errand per key");
  const turns = agreesWithModel(made, ledger);
  context.diagnostic(`${happened.length} mishaps: ${happened.join("; ")}`);
  context.diagnostic(
    `${started} runs of the load, ${sent} errands, ${made.size} programs (${turns} turns agree), ${executions(stage.directory).length} executions`,
  );
});
