import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { migrationWith } from "../src/migration.ts";

test("a fork of a run of 200 steps that failed at step 150 completes with a mended activity, and runs only what lies after", async () => {
  const calls: number[] = [];
  const faulty = migrationWith(async (account) => {
    calls.push(account);
    if (account === 150) throw new Error("account 150 is in an odd state");
    return 1;
  });
  const mended = migrationWith(async (account) => {
    calls.push(account);
    return 1;
  });
  const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

  await using env = await createTestEnvironment({ workflows: [faulty] });
  const run = await env.start(faulty, { count: 200 }, { id: "migration" });
  await assert.rejects(run.result(), { status: "Failed" });
  assert.deepEqual(calls.splice(0), upTo(150));
  const before = await env.history("migration");

  await env.restart({ workflows: [mended] });
  const fork = await run.fork({ at: "last", id: "migration-mended" });
  assert.equal(await fork.result(), 200);
  assert.deepEqual(calls.splice(0), upTo(200, 150));

  // The same from a number: the end of the turn that began step 190.
  const { seq } = (await env.history("migration-mended")).filter(({ type }) => type === "ActivityScheduled")[189] ?? { seq: 0 };
  assert.equal(await (await fork.fork({ at: seq })).result(), 200);
  assert.deepEqual(calls, upTo(200, 190));

  assert.deepEqual(await env.history("migration"), before, "what failed is as it was");
});
