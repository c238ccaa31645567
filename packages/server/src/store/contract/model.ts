/** Random flushes, sound and unsound, against the memory store: every provider gives the same answers and ends in the same state. */
import assert from "node:assert/strict";
import * as fc from "fast-check";
import type { ChildWrite, Flush, InboxMessage, ShardEpoch, Store, StoredStatus, TurnWrite } from "../../engine/ports/store.ts";
import { memoryStore } from "../memory.ts";
import { unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const shardCount = 3;
const runCount = 5;
const idCount = 3;

type Step =
  | { readonly kind: "flush"; readonly turns: readonly TurnPlan[]; readonly staleFence: readonly boolean[] }
  | { readonly kind: "claim"; readonly owner: number }
  | { readonly kind: "release"; readonly slot: number }
  | { readonly kind: "post"; readonly run: number; readonly message: number }
  | { readonly kind: "drop"; readonly run: number; readonly message: number };

type TurnPlan = {
  readonly run: number;
  readonly id: number;
  readonly key: number | undefined;
  /** What the turn believes: usually the truth. */
  readonly tailError: number;
  readonly create: "auto" | "forced";
  readonly wrongShard: boolean;
  readonly status: StoredStatus;
  readonly busy: boolean;
  readonly count: number;
  readonly timers: readonly number[];
  readonly timersDone: readonly number[];
  readonly children: readonly { readonly run: number; readonly id: number; readonly key: number | undefined }[];
  readonly sends: readonly { readonly run: number; readonly message: number }[];
  readonly consumed: readonly number[];
  readonly attributes: number | undefined;
};

const index = (count: number) => fc.nat({ max: count - 1 });
const rarely = fc.nat({ max: 9 }).map((value) => value === 0);
const few = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 2 });
const key = fc.option(index(2), { nil: undefined, freq: 1 });

const turnPlan: fc.Arbitrary<TurnPlan> = fc.record({
  run: index(runCount),
  id: index(idCount),
  key,
  tailError: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, -1),
  create: fc.constantFrom("auto" as const, "auto" as const, "auto" as const, "forced" as const),
  wrongShard: rarely,
  status: fc.constantFrom<StoredStatus>("open", "open", "open", "parked", "Completed", "Failed"),
  busy: fc.boolean(),
  count: fc.integer({ min: 1, max: 3 }),
  timers: few(index(3)),
  timersDone: few(index(3)),
  children: few(fc.record({ run: fc.nat({ max: 30 }), id: index(idCount + 2), key })),
  sends: few(fc.record({ run: index(runCount + 1), message: index(4) })),
  consumed: few(index(4)),
  attributes: fc.option(index(3), { nil: undefined }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("flush" as const),
      turns: fc.uniqueArray(turnPlan, { selector: ({ run }) => run, minLength: 1, maxLength: runCount }),
      staleFence: fc.array(rarely, { minLength: shardCount, maxLength: shardCount }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("claim" as const), owner: index(2) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const), slot: index(shardCount) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("post" as const), run: index(runCount + 1), message: index(4) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop" as const), run: index(runCount + 1), message: index(4) }) },
);

export function model({ test, store, runs }: Suite): void {
  test("random flushes with forced conflicts end as they do in the memory store", async () => {
    const reference = await memoryStore().open({ now: () => 0, log: { info: () => {}, warn: () => {} } });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const [subject, twin] = await Promise.all([World.create(store()), World.create(reference)]);
        const names = { tenant: unique("tenant-"), prefix: unique("run-") };
        for (const [at, each] of steps.entries()) {
          const answers = [await subject.play(each, at, names), await twin.play(each, at, names)];
          assert.deepEqual(answers[0], answers[1]);
          assert.deepEqual(await subject.observe(names), await twin.observe(names));
        }
      }),
      { numRuns: runs, interruptAfterTimeLimit: 60_000, includeErrorInReport: true },
    );
  });
}

type Names = { readonly tenant: string; readonly prefix: string };

/** One store, with what the steps need to know of it. */
class World {
  readonly #store: Store;
  readonly #group: string;
  #fence: readonly ShardEpoch[] = [];
  #owner = "";

  private constructor(store: Store, group: string) {
    this.#store = store;
    this.#group = group;
  }

  static async create(store: Store): Promise<World> {
    const world = new World(store, unique("group-"));
    await world.#claim("owner-0");
    return world;
  }

  async play(step: Step, at: number, names: Names): Promise<unknown> {
    switch (step.kind) {
      case "flush": {
        const { done, rejectedChildren, failed } = await this.#store.commit(await this.#flush(step, at, names));
        assert.equal(failed.size, 0);
        return [[...done].sort(), [...rejectedChildren].sort()];
      }
      case "claim":
        return this.#claim(`owner-${step.owner}`);
      case "release": {
        const released = this.#fence[step.slot] as ShardEpoch;
        await this.#store.releaseShards(this.#owner, [released]);
        return undefined;
      }
      case "post":
        return this.#store.post([this.#message(step.run, step.message, names)]);
      case "drop":
        return this.#store.drop([this.#message(step.run, step.message, names)]);
    }
  }

  async observe({ tenant, prefix }: Names): Promise<unknown> {
    const shards = this.#fence.map(({ shard }) => shard);
    const rows = await this.#store.listInstances(tenant, {}, { limit: 1_000 });
    const loaded = await this.#store.loadInstances(rows);
    const ids = Array.from({ length: idCount + 2 }, (_, id) => this.#store.findInstance(tenant, `id-${id}`));
    const keys = [0, 1].map((each) => this.#store.findStartKey(tenant, "flow", `key-${each}`));
    const runnable = await Promise.all(
      (["busy", "parked"] as const).map((which) => this.#store.listRunnable(shards, which, { limit: 1_000 })),
    );
    const inbox = await this.#store.listInbox(shards, { limit: 1_000 });
    const timers = await this.#store.listTimers(shards, 1_000_000, 1_000);
    assert.deepEqual(
      loaded.map(({ row }) => row),
      rows,
    );
    return {
      rows: rows.map((row) => ({ ...row, shard: row.shard - this.#first })),
      turns: loaded.map(({ turns }) => turns),
      ids: (await Promise.all(ids)).map((row) => row?.run),
      keys: await Promise.all(keys),
      runnable: runnable.map((list) => list.map(({ run }) => run)),
      inbox: inbox
        .filter(({ run }) => run.startsWith(prefix))
        .map(({ run, message, fact, shard }) => [run, message, fact, shard - this.#first]),
      timers: timers.map(({ run, effect, due, shard }) => [run, effect, due, shard - this.#first]),
    };
  }

  get #first(): number {
    return this.#fence[0]?.shard ?? 0;
  }

  async #claim(owner: string): Promise<unknown> {
    const { granted, held } = await this.#store.claimShards({
      group: this.#group,
      shards: shardCount,
      owner,
      lease: 3_600_000,
      dead: ["owner-0", "owner-1"],
    });
    this.#fence = granted;
    this.#owner = owner;
    return [granted.map(({ shard, epoch }) => [shard - this.#first, epoch]), held.length];
  }

  #shard(run: number): number {
    return this.#first + (run % shardCount);
  }

  #message(run: number, message: number, { tenant, prefix }: Names): InboxMessage {
    return { tenant, run: `${prefix}/${run}`, shard: this.#shard(run), message: `m-${message}`, fact: `{"m":${message}}` };
  }

  async #flush(step: Step & { kind: "flush" }, at: number, names: Names): Promise<Flush> {
    const fence = this.#fence.map(({ shard, epoch }, slot) => ({ shard, epoch: step.staleFence[slot] ? epoch - 1 : epoch }));
    const turns = await Promise.all(step.turns.map((plan) => this.#turn(plan, at, names)));
    return { fence, turns };
  }

  async #turn(plan: TurnPlan, at: number, names: Names): Promise<TurnWrite> {
    const { tenant, prefix } = names;
    const run = `${prefix}/${plan.run}`;
    const known = await this.#store.getInstance({ tenant, run });
    const shard = plan.wrongShard ? this.#shard(plan.run + 1) : this.#shard(plan.run);
    const create = plan.create === "forced" || known === undefined;
    const startKey = (each: number | undefined) => each !== undefined && { startKey: { key: `key-${each}`, digest: run } };
    const children = plan.children.map(
      (each, order): ChildWrite => ({
        run: `${prefix}/child-${at}-${plan.run}-${order}`,
        shard: this.#shard(each.run),
        instance: { id: `id-${each.id}`, workflow: "flow", version: "2", ...startKey(each.key) },
        start: {
          tenant,
          run: `${prefix}/child-${at}-${plan.run}-${order}`,
          shard: this.#shard(each.run),
          message: "start",
          fact: '"start"',
        },
        rejection: { tenant, run, shard, message: `rejected-${at}-${order}`, fact: '"rejected"' },
      }),
    );
    return {
      tenant,
      run,
      shard,
      ...(create && { create: { id: `id-${plan.id}`, workflow: "flow", version: "1", ...startKey(plan.key) } }),
      tail: Math.max(0, (known === undefined || plan.create === "forced" ? 0 : known.tail) + plan.tailError),
      count: plan.count,
      at: 1_000 + at,
      node: `node-${at}`,
      nonce: `nonce-${at}`,
      events: `[${at}]`,
      status: plan.status,
      busy: plan.busy,
      ...(plan.attributes !== undefined && { attributes: plan.attributes === 0 ? {} : { a: plan.attributes, b: [`v${plan.attributes}`] } }),
      timers: plan.timers.map((effect) => ({ effect: `e-${effect}`, due: 10 * at + effect })),
      timersDone: plan.timersDone.map((effect) => `e-${effect}`),
      children,
      sends: plan.sends.map(({ run: target, message }) => this.#message(target, message, names)),
      consumed: plan.consumed.map((message) => `m-${message}`),
    };
  }
}
