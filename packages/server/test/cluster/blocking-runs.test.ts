/** Runs that end the process of every node that tries them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, sleep, workflow } from "@wovyr/sdk";
import type { Incoming } from "@wovyr/sdk/internal";
import { HistoryRows } from "@wovyr/server/internal";
import { Cluster, type SimulatedNode } from "./simulation.ts";

/** Nodes that are started again when they end, with code that blocks until it is mended. */
class Service {
  readonly cluster: Cluster;
  ends = 0;
  /** How often the activity of the run was executed. */
  executions = 0;
  mended = false;

  readonly #slowAt: string | undefined;

  /** `slowAt`: what its nodes ask the store slowly. */
  constructor(seed: number, slowAt?: string) {
    this.cluster = new Cluster([], seed);
    this.#slowAt = slowAt;
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
      for (let n = 0; n < 50; n += 1) yield* sleep(10_000);
      return "done";
    });
    const node: SimulatedNode = this.cluster.join({ workflows: [blocking, neighbour] });
    node.slowAt = this.#slowAt;
    return node;
  }

  async inbox() {
    const store = await this.cluster.opened();
    return store.listInbox(
      Array.from({ length: 32 }, (_, shard) => shard),
      { limit: 10 },
    );
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
  for (const slowAt of [undefined, "listRunnable"])
    test(`H043 a run that blocks ${when} is parked after three tries and goes on when it is mended, in whatever order its nodes hear of it${slowAt === undefined ? "" : " (a slow look for it)"}`, async () => {
      for (let seed = 1; seed <= 12; seed += 1) {
        const service = new Service(seed, slowAt);
        const { cluster } = service;
        service.join();
        await service.start("blocking", "bad", when);
        await service.run(90_000);
        assert.equal(service.ends, ends, `seed ${seed}`);
        const { status, parked } = await service.describe("bad");
        assert.equal(status, "Parked");
        assert.match(parked?.message ?? "", /without yielding until its process was ended, 3 times/);
        assert.ok(service.executions <= 2, `${service.executions} executions of an activity whose outcome was lost once`);
        assert.deepEqual(
          (await service.inbox()).map(({ message }) => message),
          when === "later" ? ["outcome:0:1"] : ["start"],
        );
        service.mended = true;
        await service.replace(cluster.nodes[0]);
        await service.run(15_000);
        assert.deepEqual(await service.result("bad"), { status: "Completed", output: 2 }, `seed ${seed}`);
        assert.deepEqual(await service.inbox(), []);
        cluster.crashAll();
      }
    });

test("H043 a run that had not begun when it was parked goes on when its start comes once more right before its chance", async () => {
  const service = new Service(1, "listRunnable");
  const { cluster } = service;
  service.join();
  await service.start("blocking", "bad", "at once");
  await service.run(90_000);
  service.mended = true;
  await service.replace(cluster.nodes[0]);
  const [start] = await service.inbox();
  assert.ok(start);
  const engine = () => cluster.nodes[0]?.engine;
  await cluster.until("it is in memory, parked", () => engine()?.table.get(start.run)?.state.parked !== undefined);
  engine()?.deliver(start, { fact: (await new HistoryRows(undefined).decodeFact(start.fact)) as Incoming, inbox: start.message });
  engine()?.giveChance(start);
  await service.run(15_000);
  assert.deepEqual(await service.result("bad"), { status: "Completed", output: 2 });
  cluster.crashAll();
});

test("H043 an outcome that is on its way into the inbox is not lost when its run is loaded meanwhile", async () => {
  const service = new Service(1, "post");
  const { cluster } = service;
  service.join();
  await service.start("blocking", "bad", "later");
  while (service.ends === 0) await service.run(1_000);
  service.mended = true;
  const [row] = await (await cluster.opened()).listInstances("default", {}, { limit: 1 });
  assert.ok(row);
  let loads = 0;
  await cluster.advance(30_000, () => {
    const engine = cluster.nodes[0]?.engine;
    if (loads > 0 || engine?.heldMail.isSecuring(row.run, "outcome:0:1") !== true) return;
    loads += 1;
    engine.table.evictIdle();
    void engine.revival.load(row);
  });
  assert.equal(loads, 1);
  assert.deepEqual(await service.result("bad"), { status: "Completed", output: 2 });
  assert.equal(service.executions, 2, "once for the node that ended, once for the next");
  cluster.crashAll();
});

test("H043 what goes on blocking is tried again once by each process that begins, and not before it has waited twice as long as the last time", async () => {
  const service = new Service(3);
  const { cluster } = service;
  const endsWithin = async (milliseconds: number) => {
    const before = service.ends;
    await service.run(milliseconds);
    return service.ends - before;
  };
  const endsOfNext = async () => {
    await service.replace(cluster.nodes[0]);
    return endsWithin(30_000);
  };
  service.join();
  await service.start("blocking", "bad", "later");
  await service.run(60_000);
  assert.equal(service.ends, 3);
  assert.deepEqual([await endsOfNext(), await endsOfNext(), await endsWithin(60_000)], [1, 0, 0]);
  assert.deepEqual([await endsOfNext(), await endsOfNext(), await endsWithin(60_000)], [1, 0, 0]);
  // It is to wait for two minutes now, of which somewhat less have passed.
  assert.deepEqual([await endsOfNext(), await endsOfNext()], [0, 1]);
  assert.match((await service.describe("bad")).parked?.message ?? "", /6 times/);
  cluster.crashAll();
});

test("H043 a run that blocks does not go from node to node, and its neighbours go on", async () => {
  const service = new Service(7);
  const { cluster } = service;
  service.join();
  service.join();
  await service.run(5_000);
  await service.start("neighbour", "good");
  await service.start("blocking", "bad", "later");
  await service.run(300_000);
  const { ends } = service;
  assert.ok(ends >= 3 && ends <= 5, `${ends} nodes ended`);
  await service.run(300_000);
  assert.equal(service.ends, ends);
  assert.equal((await service.describe("bad")).status, "Parked");
  assert.deepEqual(await service.result("good"), { status: "Completed", output: "done" });
  cluster.crashAll();
});
