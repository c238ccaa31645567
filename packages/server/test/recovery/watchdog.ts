/** The cases of both stores: code that loops without yielding ends its process three times, and is parked. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { endOfCase } from "./checks.ts";
import { freePort } from "./free-port.ts";
import { ground, type StoreKind } from "./ground.ts";
import { patientClient } from "./load.ts";
import { supervise } from "./supervisor.ts";
import { until, within } from "./until.ts";
import { bystander, lateSpinner, spinner } from "./workflows.ts";

export async function neverYields(context: TestContext, kind: StoreKind, where: "first turn" | "later turn"): Promise<void> {
  const place = await ground(context, kind);
  const port = await freePort();
  const supervisor = supervise(place, { port, turnTimeout: 1_500 });
  const client = patientClient(`http://127.0.0.1:${port}`);
  const neighbours = [100, 200, 3_000].map((milliseconds) =>
    client.execute(bystander, milliseconds, { idempotencyKey: `n-${milliseconds}` }),
  );
  const options = { id: "bad", idempotencyKey: "bad" };
  const handle = await within(
    "the start",
    60_000,
    where === "first turn" ? client.start(spinner, true, options) : client.start(lateSpinner, 1, options),
  );
  const parked = await until(
    "the run is parked for good",
    async () => {
      if (supervisor.endings.length < 3) return false;
      const { status, parked } = await handle.describe();
      return status === "Parked" && supervisor.endings.length >= (where === "first turn" ? 4 : 3) && parked;
    },
    90_000,
    100,
  );
  assert.equal(parked.code, "TURN_NEVER_YIELDS");
  assert.deepEqual(await within("the neighbours", 60_000, Promise.all(neighbours)), [100, 200, 3_000]);
  // It stays up now, and takes more work.
  const { pid } = supervisor.host;
  for (const milliseconds of [1, 2, 1_800]) assert.equal(await client.execute(bystander, milliseconds), milliseconds);
  assert.equal(supervisor.host.pid, pid);
  assert.ok(supervisor.endings.every(({ signal, code }) => signal === "SIGABRT" || code === 70));
  assert.match(supervisor.log(), /has not yielded for 1500 ms/);
  assert.deepEqual(await supervisor.stop(), { code: 0, signal: null });
  writeFileSync(join(place.directory, "mended"), "");
  const next = place.host({ port });
  await next.url;
  assert.equal(await handle.result({ timeout: "30s" }), 2, "it goes on with the mended code");
  next.kill("SIGTERM");
  assert.deepEqual(await next.ended, { code: 0, signal: null });
  const { runs } = await endOfCase(place);
  assert.ok(runs.every(({ status }) => status === "Completed"));
}
