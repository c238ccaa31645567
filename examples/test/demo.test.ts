import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("the demo survives its crash and says so", async () => {
  const script = fileURLToPath(import.meta.resolve("../src/demo.ts"));
  const demo = spawn(process.execPath, ["--conditions=source", "--import", "tsx", script], {
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await text(demo.stdout);
  assert.equal(demo.exitCode ?? (await new Promise((done) => demo.once("close", done))), 0, output);
  const lines = output.trimEnd().split("\n");
  assert.equal(lines.at(-1), "order-1 Completed");
  assert.match(output, /✓ \d+ steps completed before the kill, and none of them ran again/);
  assert.match(output, /━━━ process \d+ is killed ━━━[\s\S]*order-4 .*run again[\s\S]*order-1 +Completed/);
  assert.ok(!output.includes("\u001b"), "NO_COLOR was not respected");
});
