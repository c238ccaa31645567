import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, workflow } from "@wovyr/sdk";
import { createOrchestrator, memoryStore } from "../../src/index.ts";
import { until } from "./until.ts";

const greet = activity("greet", async (name: string) => `hello ${name}`);
const awaiting = workflow("awaiting", async function* (name: string) {
  yield* greet(name);
  await new Promise((resolve) => setTimeout(resolve, 1));
  return 1;
});

for (const rememberLines of [true, false])
  test(`a parked run whose code is still wrong is tried once per start and stays parked, ${rememberLines ? "with" : "without"} remembered lines`, async () => {
    const store = memoryStore();
    const lines: string[] = [];
    const note = (message: string) => lines.push(message);
    const log = { debug: note, info: note, warn: note, error: note };
    const first = await createOrchestrator({ workflows: [awaiting], store, log, rememberLines });
    const { id } = await first.client.start(awaiting, "Ada");
    const isParked = async () => (await first.client.handle(id).describe()).status === "Parked";
    await until("the run is parked", isParked);
    await first.close();
    const parkedOnce = lines.filter((line) => line.includes("parked")).length;
    const second = await createOrchestrator({ workflows: [awaiting], store, log, rememberLines });
    await until("it was tried again", async () => lines.filter((line) => line.includes("parked")).length > parkedOnce);
    const { status, parked } = await second.client.handle(id).describe();
    await second.close();
    assert.equal(status, "Parked");
    assert.match(parked?.message ?? "", /no effect.*wasted-chance\.test\.ts:\d+/s);
    assert.equal(lines.filter((line) => line.includes("parked")).length, parkedOnce + 1);
  });
