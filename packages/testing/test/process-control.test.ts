import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { freeze, thaw } from "@wovyr/testing";

const echo = `process.on("message", (message) => process.send(message));`;
const state = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.charAt(0);
const linux = { skip: existsSync("/proc/self/stat") ? false : "this needs /proc" };

test("a frozen process does nothing, and goes on when it is thawed", linux, async () => {
  const child = spawn(process.execPath, ["-e", echo], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const pid = child.pid ?? 0;
  try {
    const first = once(child, "message");
    child.send("ready");
    await first;
    freeze(pid);
    for (let seen = state(pid); seen !== "T"; seen = state(pid)) await new Promise((resolve) => setImmediate(resolve));
    let answered = false;
    const second = once(child, "message").then(([message]) => {
      answered = true;
      return message;
    });
    child.send("second");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answered, false);
    thaw(pid);
    assert.equal(await second, "second");
  } finally {
    child.kill("SIGKILL");
  }
  await once(child, "exit");
  assert.throws(() => freeze(pid), { code: "INVALID_OPTION", message: /no process/ });
});

test("what cannot be frozen is refused", () => {
  assert.throws(() => freeze(process.pid), { code: "INVALID_OPTION", message: /itself/ });
  for (const wrong of [0, -1, 1.5, Number.NaN, "1" as never]) {
    assert.throws(() => freeze(wrong), { code: "INVALID_OPTION" });
    assert.throws(() => thaw(wrong), { code: "INVALID_OPTION" });
  }
});
