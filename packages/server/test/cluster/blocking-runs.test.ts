/** Runs that end the process of every node that tries them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import { Cluster, type SimulatedNode } from "./simulation.ts";

/** Nodes that are started again when they end, with code that blocks until it is mended. */
class Service {
  readonly cluster: Cluster;
  ends = 0;
  /** How often the activity of the run was executed. */
  executions = 0;
  mended = false;

  constructor(seed: number) {
    this.cluster = new Cluster([], seed);
  }

  join(): SimulatedNode {
    const blocks = () => {
      if (!this.mended) node.block();
    };
    const double = activity("double", async (n: number) => {
      this.executions += 1;
      return n * 2;
    });
    const blocking = workflow("blocking", async function* (when: "at once" | "later") {
      if (when === "at once") blocks();
      const value = yield* double(1);
      if (when === "later") blocks();
      return value;
    });
    const neighbour = workflow("neighbour", async function* () {
      for (let n = 0; n < 100; n += 1) yield* sleep(20_000);
      return "done";
    });
    const node: SimulatedNode = this.cluster.join({ workflows: [blocking, neighbour] });
    return node;
  }

  /** Lets time pass; what ends is started again a second later. */
  async run(milliseconds: number): Promise<void> {
    const { cluster } = this;
    for (const until = cluster.clock.now() + milliseconds; cluster.clock.now() < until; ) {
      await cluster.advance(1_000);
      for (const node of cluster.nodes.splice(0)) {
        if (!node.gone) cluster.nodes.push(node);
        else {
          this.ends += 1;
          this.join();
        }
      }
    }
  }

  /** Lets time pass until something is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const noted = work.finally(() => {
      done = true;
    });
    noted.catch(() => {});
    while (!done) await this.run(1_000);
    return noted;
  }

  start(workflow: string, id: string, input?: string): Promise<unknown> {
    return this.until(this.cluster.ask(id, (operations) => operations.start({ workflow, id, input, idempotencyKey: id })));
  }

  describe(id: string) {
    return this.until(this.cluster.ask(id, (operations) => operations.describe(id)));
  }

  async result(id: string) {
    const { status, ...ended } = await this.until(this.cluster.ask(id, (operations) => operations.result(id, { wait: 1_500 })));
    return { status, output: "output" in ended ? ended.output : undefined };
  }

  /** A node leaves as it should, and one begins in its place. */
  async replace(node: SimulatedNode | undefined): Promise<void> {
    assert.ok(node?.alive);
    this.cluster.nodes.splice(this.cluster.nodes.indexOf(node), 1);
    await this.until(node.close());
    this.join();
  }
}

for (const [when, ends] of [
  ["at once", 4],
  ["later", 3],
] as const)
  test(`H043 a run that blocks ${when} is parked after three tries and goes on when it is mended, in whatever order its nodes hear of it`, async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const service = new Service(seed);
      const { cluster } = service;
      service.join();
      await service.start("blocking", "bad", when);
      await service.run(90_000);
      assert.equal(service.ends, ends, `seed ${seed}`);
      const { status, parked } = await service.describe("bad");
      assert.equal(status, "Parked");
      assert.match(parked?.message ?? "", /without yielding until its process was ended, 3 times/);
      assert.ok(service.executions <= 2, `${service.executions} executions of an activity whose outcome was lost once`);
      service.mended = true;
      await service.replace(cluster.nodes[0]);
      await service.run(15_000);
      assert.deepEqual(await service.result("bad"), { status: "Completed", output: 2 }, `seed ${seed}`);
      const store = await cluster.opened();
      const shards = Array.from({ length: 32 }, (_, shard) => shard);
      assert.deepEqual(await store.listInbox(shards, { limit: 10 }), []);
      cluster.crashAll();
    }
  });

test("H043 what goes on blocking is tried again once by each process that begins, and less and less often: its neighbours go on", async () => {
  const service = new Service(7);
  const { cluster } = service;
  service.join();
  service.join();
  await service.run(5_000);
  await service.start("neighbour", "good");
  await service.start("blocking", "bad", "later");
  const ends: number[] = [];
  for (let part = 0; part < 4; part += 1) {
    await service.run(600_000);
    ends.push(service.ends - ends.reduce((sum, each) => sum + each, 0));
    // A deployment, as it were: whoever begins may try.
    await service.replace(cluster.nodes[0]);
  }
  assert.ok((ends[0] as number) >= 3 && (ends[0] as number) <= 7, `in the first ten minutes ${ends[0]} nodes ended`);
  for (const later of ends.slice(1)) assert.ok(later <= 4, `in each ten minutes ${ends.join(", ")} nodes ended`);
  assert.equal((await service.describe("bad")).status, "Parked");
  assert.deepEqual(await service.result("good"), { status: "Completed", output: "done" });
  cluster.crashAll();
});
