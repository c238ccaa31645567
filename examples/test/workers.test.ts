/** Workers in other languages than TypeScript, as the documentation shows them. */
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { type ActivityError, activity, Type, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore } from "@wovyr/server";
import { blocksOf } from "./snippets.ts";

const root = resolve(import.meta.dirname, "../..");
const isThere = (command: string) => spawnSync(command, ["--version"]).status === 0;

const sendMail = activity.contract("send-mail", {
  queue: "mail",
  input: Type.Object({ to: Type.String() }),
  output: Type.Object({ message: Type.String(), attempt: Type.Number() }),
  retry: { maxAttempts: 2, initialDelay: "10ms" },
});
const mailing = workflow("mailing", async function* (to: string) {
  return yield* sendMail({ to });
});
const render = activity.contract("render", {
  queue: "gpu",
  input: Type.Object({ scene: Type.String() }),
  output: Type.Object({ url: Type.String() }),
});
const film = workflow("film", async function* (scene: string) {
  return (yield* render({ scene })).url;
});

async function serving(context: TestContext) {
  const orchestrator = await createOrchestrator({ workflows: [mailing, film], store: memoryStore() });
  context.after(() => orchestrator.close());
  return { client: orchestrator.client, url: await orchestrator.listen({ port: 0 }) };
}

test("the worker in Python does tasks, and says what fails", { skip: !isThere("python3"), timeout: 60_000 }, async (context) => {
  const { client, url } = await serving(context);
  const python = spawn("python3", [join(root, "examples/worker.py"), url, "mail"], { stdio: ["ignore", "ignore", "inherit"] });
  context.after(() => python.kill("SIGKILL"));
  const run = await client.start(mailing, "ada@example.com");
  assert.deepEqual(await run.result(), { message: `${run.runId}/0`, attempt: 1 });
  await assert.rejects(client.execute(mailing, "nowhere"), (error: Error) => {
    const { attempts, cause } = error.cause as ActivityError;
    assert.deepEqual([attempts, (cause as Error).name, (cause as Error).message], [2, "ValueError", "nowhere is no address"]);
    return true;
  });
  for await (const { id, queues } of client.workers()) {
    assert.match(id, /^python-/);
    assert.deepEqual(queues, ["mail"]);
  }
  const lines = readFileSync(join(root, "examples/worker.py"), "utf8").trimEnd().split("\n");
  assert.ok(lines.length <= 60, `${lines.length} lines`);
});

test("the calls of curl in the documentation make a worker", { skip: !isThere("curl"), timeout: 60_000 }, async (context) => {
  const { client, url } = await serving(context);
  const page = readFileSync(join(root, "docs/workers.md"), "utf8");
  const calls = blocksOf(page).flatMap(({ info, text }) => (info.join(" ") === "sh curl" ? [text] : []));
  assert.equal(calls.length, 3);
  const [poll = "", heartbeat = "", complete = ""] = calls;
  const call = async (text: string, token = "") => {
    const { stdout } = await promisify(execFile)("sh", ["-c", text], { env: { ...process.env, URL: url, TOKEN: token } });
    return JSON.parse(stdout) as unknown;
  };
  const run = await client.start(film, "dawn");
  const { items } = (await call(poll)) as { items: { token: string; activity: string; input: unknown; attempt: number }[] };
  const [task] = items;
  assert.deepEqual([task?.activity, task?.input, task?.attempt], ["render", { scene: "dawn" }, 1]);
  assert.deepEqual(await call(heartbeat, task?.token), { lease: 60_000 });
  assert.deepEqual(await call(complete, task?.token), { token: task?.token });
  assert.equal(await run.result(), "https://films.example/dawn");
  assert.equal(((await call(heartbeat, task?.token)) as { code: string }).code, "TASK_NOT_HELD");
});
