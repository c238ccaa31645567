import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

test("the commands that `npm start` prints work when they are pasted", { skip: hasCurl ? false : "there is no curl here" }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "wovyr-start-"));
  const script = fileURLToPath(import.meta.resolve("../src/start.ts"));
  const start = spawn(process.execPath, ["--conditions=source", "--import", "tsx", script], {
    env: { ...process.env, PORT: "0", WOVYR_DIR: directory },
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const answers: string[] = [];
    for await (const line of createInterface({ input: start.stdout })) {
      if (!line.startsWith("curl ")) continue;
      const { status, stdout } = spawnSync("bash", ["-c", `${line} --fail`], { encoding: "utf8", timeout: 60_000 });
      assert.equal(status, 0, `${line}\n${stdout}`);
      answers.push(stdout);
      if (answers.length === 8) break;
    }
    const [started, description, sent, result, history, stream, greeting, published] = answers as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    assert.equal(JSON.parse(started).id, "order-42");
    assert.equal(JSON.parse(description).workflow, "order");
    assert.equal(JSON.parse(sent).id, "order-42");
    assert.equal(JSON.parse(result).status, "Completed");
    assert.equal(JSON.parse(history).items.at(-1).type, "InstanceCompleted");
    assert.match(stream, /^event: InstanceCompleted$/m);
    assert.equal(JSON.parse(greeting).output, "Hello, Ada!");
    assert.equal(JSON.parse(published).started[0].workflow, "bookkeeping");
  } finally {
    start.kill("SIGTERM");
    if (start.exitCode === null) await once(start, "exit");
    rmSync(directory, { recursive: true, force: true });
  }
  assert.equal(start.exitCode, 0);
});
