/** What waiting runs keep in their variables, and a heap that is too small for all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@wovyr/testing";
import { ground } from "./ground.ts";
import { patientClient } from "./load.ts";
import { Go, hoarder } from "./workflows.ts";

const runs = 1_200;

/** None of the cache's limits is reached: what the runs keep is not in their histories. Slow, because a full heap is collected all the time. */
test(`H113 ${runs} waiting runs of 100 KB each, more than the heap holds: all complete, and the process lives`, async (context) => {
  const place = await ground(context, "postgres");
  const host = place.host({ heapMegabytes: 160 });
  const client = patientClient(await host.url);
  const ids = Array.from({ length: runs }, (_, n) => `h-${n}`);
  const work = async () => {
    for (let first = 0; first < runs; first += 500)
      await client.startBatch(
        hoarder,
        ids.slice(first, first + 500).map((id, n) => ({ input: first + n, id, idempotencyKey: id })),
      );
    const random = new SeededRandom(113);
    const order = ids.map((id) => ({ id, at: random.fraction() })).sort((a, b) => a.at - b.at);
    for (let first = 0; first < runs; first += 100)
      await Promise.all(order.slice(first, first + 100).map(({ id }) => client.handle(id).send(Go, { text: id }, { idempotencyKey: id })));
    for (let first = 0; first < runs; first += 100)
      assert.deepEqual(
        await Promise.all(ids.slice(first, first + 100).map((id) => client.handle(hoarder, id).result())),
        ids.slice(first, first + 100).map((id) => `${id} 12800`),
      );
    host.kill("SIGTERM");
  };
  // A process that dies on the way is not waited for.
  const [ending] = await Promise.race([Promise.all([host.ended, work()]), host.ended.then((end) => [end] as const)]);
  assert.deepEqual(ending, { code: 0, signal: null }, host.log());
});
