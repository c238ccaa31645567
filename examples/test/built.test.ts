// What is published: the built packages, as plain Node runs them. `npm run build` makes them, and `npm test` begins with it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "../..");

async function run(program: string): Promise<{ out: string; err: string; signal: NodeJS.Signals | null }> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, [, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { out, err, signal: signal as NodeJS.Signals | null };
}

test("the built packages host a workflow on the embedded store, over HTTP, and test one in virtual time", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "wovyr-built-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const { out, err } = await run(`
    import { activity, sleep, workflow } from "@wovyr/sdk";
    import { createClient } from "@wovyr/sdk/client";
    import "@wovyr/sdk/worker";
    import { createOrchestrator, pgliteStore } from "@wovyr/server";
    import "@wovyr/server/transaction";
    import { createTestEnvironment } from "@wovyr/testing";
    const double = activity("double", async (n) => 2 * n);
    const doubling = workflow("doubling", async function* (n) { yield* sleep(10); return yield* double(n); });
    const orchestrator = await createOrchestrator({ workflows: [doubling], store: pgliteStore(${JSON.stringify(directory)}) });
    const client = createClient({ url: await orchestrator.listen({ port: 0 }) });
    console.log(await client.execute(doubling, 21));
    await orchestrator.close();
    const env = await createTestEnvironment({ workflows: [doubling] });
    console.log(await env.execute(doubling, 4));
    await env[Symbol.asyncDispose]();
  `);
  assert.equal(err, "");
  assert.equal(out, "42\n8\n");
});

test("the built SDK has TypeBox within it, takes schemas of another one, and knows the formats and kinds that are registered with its own", async () => {
  const { out, err } = await run(`
    import { Kind, Type as Other } from "@sinclair/typebox";
    import { FormatRegistry, Type, TypeRegistry, workflow } from "@wovyr/sdk";
    import { createTestEnvironment } from "@wovyr/testing";
    FormatRegistry.Set("plate", (text) => /^[A-Z]+-[0-9]+$/.test(text));
    TypeRegistry.Set("even", (_, value) => value % 2 === 0);
    const echo = (name, input) => workflow(name, { input }, async function* (value) { return value.plate; });
    const plate = (made) => made.Object({ plate: made.String({ format: "plate" }), n: made.Unsafe({ [Kind]: "even" }) });
    const both = [echo("own", plate(Type)), echo("other", plate(Other))];
    const env = await createTestEnvironment({ workflows: both });
    for (const each of both) {
      console.log(await env.execute(each, { plate: "AB-1", n: 2 }));
      for (const wrong of [{ plate: "?", n: 2 }, { plate: "AB-1", n: 3 }]) console.log(await env.execute(each, wrong).catch(({ code }) => code));
    }
    await env[Symbol.asyncDispose]();
  `);
  assert.equal(err, "");
  assert.equal(out, "AB-1\nINVALID_INPUT\nINVALID_INPUT\n".repeat(2));
});

test("the watchdog of the built server ends a process whose workflow never yields", async () => {
  const { err, signal } = await run(`
    import { workflow } from "@wovyr/sdk";
    import { createOrchestrator, memoryStore } from "@wovyr/server";
    const endless = workflow("endless", async function* () { for (;;); });
    const { client } = await createOrchestrator({ workflows: [endless], store: memoryStore(), turnTimeout: 300 });
    await client.start(endless);
  `);
  assert.equal(signal, "SIGABRT");
  assert.match(err, /has not yielded|never yield/i);
});
