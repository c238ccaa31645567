import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, awaitEvent, event, Type, workflow } from "@wovyr/sdk";
import { createOrchestrator, postgresStore } from "../../src/index.ts";
import { createDatabase } from "../store/postgres-database.ts";

const Go = event("go", Type.Number());
const waiting = workflow("waiting", async function* () {
  return yield* awaitEvent(Go);
});

test("a message that reaches the wrong group is refused, and changes nothing", async (context) => {
  const { url, drop } = await createDatabase();
  const open = (group: string) => createOrchestrator({ workflows: [waiting], store: postgresStore(url), group });
  const [red, blue] = await Promise.all([open("red"), open("blue")]);
  context.after(async () => {
    await Promise.all([red.close(), blue.close()]);
    await drop();
  });
  const handle = await red.client.start(waiting, undefined, { id: "of-red" });
  const isRefused = (error: unknown) =>
    error instanceof ApiError && error.code === "NOT_OWNER" && !error.retryable && /not of group "blue"/.test(error.message);
  const stranger = blue.client.handle(waiting, "of-red");
  await assert.rejects(stranger.send(Go, 1), isRefused);
  await assert.rejects(stranger.cancel(), isRefused);
  await handle.send(Go, 2);
  assert.equal(await handle.result(), 2);
});
