/** Random flushes, sound and unsound, against the memory store: every provider gives the same answers and ends in the same state. */
import assert from "node:assert/strict";
import * as fc from "fast-check";
import type {
  ChildWrite,
  DeadLetterKind,
  DeadLetterWrite,
  EffectKey,
  Flush,
  InboxMessage,
  Publication,
  RunImport,
  ShardEpoch,
  Store,
  StoredStatus,
  TurnWrite,
  WaitWrite,
} from "../../engine/ports/store.ts";
import { runIdPrefix } from "../../engine/run-id.ts";
import { memoryStore } from "../memory.ts";
import { beat, claim, unique } from "./scenario.ts";
import type { Suite } from "./suite.ts";

const shardCount = 3;
const runCount = 5;
const idCount = 3;
const effectCount = 3;
/** Times of steps: the first is made at this one. Run ids begin with the time at which they are made. */
const epoch = Date.UTC(2026, 0, 1);

type Step =
  | { readonly kind: "flush"; readonly turns: readonly TurnPlan[]; readonly staleFence: readonly boolean[] }
  | { readonly kind: "claim"; readonly owner: number }
  | { readonly kind: "release"; readonly slot: number }
  | { readonly kind: "post"; readonly run: number; readonly message: number }
  | { readonly kind: "drop"; readonly run: number; readonly message: number }
  | { readonly kind: "publish"; readonly id: number; readonly name: number; readonly key: number | undefined }
  | { readonly kind: "import"; readonly run: number; readonly id: number; readonly status: StoredStatus; readonly turns: number }
  | { readonly kind: "delete"; readonly runs: readonly number[] }
  | { readonly kind: "letter"; readonly run: number; readonly effect: number; readonly letter: DeadLetterKind; readonly drop: boolean }
  | { readonly kind: "heartbeat"; readonly run: number; readonly effect: number; readonly attempt: number; readonly drop: boolean }
  | { readonly kind: "outcome"; readonly run: number; readonly effect: number; readonly outcome: string | null }
  | { readonly kind: "expire"; readonly age: number };

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
  /** `after`: how many of the publications made so far are not looked back at. */
  readonly waits: readonly { readonly effect: number; readonly name: number; readonly key: number | undefined; readonly after: number }[];
  readonly waitsDone: readonly number[];
  readonly letters: readonly { readonly effect: number; readonly kind: DeadLetterKind }[];
  readonly lettersDone: readonly number[];
};

const index = (count: number) => fc.nat({ max: count - 1 });
const rarely = fc.nat({ max: 9 }).map((value) => value === 0);
const few = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 2 });
const key = fc.option(index(2), { nil: undefined, freq: 1 });
const letterKind = fc.constantFrom<DeadLetterKind>("activity", "workflow", "compensation", "event");
const anyStatus = fc.constantFrom<StoredStatus>("open", "open", "open", "parked", "paused", "compensating", "Completed", "Failed");
const effect = index(effectCount);
const run = index(runCount + 1);

const turnPlan: fc.Arbitrary<TurnPlan> = fc.record({
  run: index(runCount),
  id: index(idCount),
  key,
  tailError: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, -1),
  create: fc.constantFrom("auto" as const, "auto" as const, "auto" as const, "forced" as const),
  wrongShard: rarely,
  status: anyStatus,
  busy: fc.boolean(),
  count: fc.integer({ min: 1, max: 3 }),
  timers: few(index(3)),
  timersDone: few(index(3)),
  children: few(fc.record({ run: fc.nat({ max: 30 }), id: index(idCount + 2), key })),
  sends: few(fc.record({ run: index(runCount + 1), message: index(4) })),
  consumed: few(index(4)),
  attributes: fc.option(index(3), { nil: undefined }),
  waits: few(fc.record({ effect, name: index(2), key, after: fc.constantFrom(0, 0, 1, 3) })),
  waitsDone: few(effect),
  letters: few(fc.record({ effect, kind: letterKind })),
  lettersDone: few(effect),
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
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("publish" as const), id: index(12), name: index(2), key }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("import" as const), run, id: index(idCount), status: anyStatus, turns: index(4) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), runs: fc.array(run, { maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("letter" as const), run, effect, letter: letterKind, drop: rarely }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("heartbeat" as const), run, effect, attempt: index(3), drop: rarely }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("outcome" as const), run, effect, outcome: fc.constantFrom("1", "2", null) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("expire" as const), age: index(15) }) },
);

export function model({ test, store, runs }: Suite): void {
  test("random flushes with forced conflicts end as they do in the memory store", async () => {
    // Several databases do by and by what they are to do to each other.
    if (store().databases !== undefined) return;
    const reference = await memoryStore().open({ now: () => 0, log: { info: () => {}, warn: () => {} } });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const [subject, twin] = await Promise.all([World.create(store()), World.create(reference)]);
        const names = { tenant: unique("tenant-"), prefix: unique(runIdPrefix(epoch)) };
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
  /** Where publications stand in this store, by their order. */
  readonly #positions: number[] = [];

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
        const { done, rejectedChildren, failed, found } = await this.#store.commit(await this.#flush(step, at, names));
        assert.equal(failed.size, 0);
        return [[...done].sort(), [...rejectedChildren].sort(), [...found].sort()];
      }
      case "claim":
        return this.#claim(`owner-${step.owner}`);
      case "release": {
        const released = this.#fence[step.slot] as ShardEpoch;
        await beat(this.#at, this.#owner, { give: [released] });
        return undefined;
      }
      case "post":
        return this.#store.post([this.#message(step.run, step.message, names)]);
      case "drop":
        return this.#store.drop([this.#message(step.run, step.message, names)]);
      case "publish": {
        const { position, delivered, ...outcome } = await this.#store.publish(this.#publication(step, at, names));
        if (!outcome.known) this.#positions.push(position);
        return {
          ...outcome,
          order: this.#positions.indexOf(position),
          delivered: delivered.map((each) => [each.run, each.shard - this.#first]),
        };
      }
      case "import":
        return this.#store.importRun(this.#import(step, at, names));
      case "delete":
        return this.#store.deleteRuns(step.runs.map((each) => ({ tenant: names.tenant, run: `${names.prefix}/${each}` })));
      case "letter": {
        const letter = {
          ...this.#effect(step, names),
          kind: step.letter,
          workflow: "flow",
          id: "id",
          name: "n",
          attempts: 1,
          failure: `{"at":${at}}`,
        };
        return step.drop ? this.#store.dropDeadLetters([letter]) : this.#store.addDeadLetter({ ...letter, at: epoch + (at % 3) });
      }
      case "heartbeat": {
        const beat = { ...this.#effect(step, names), attempt: step.attempt, details: `"${at}"` };
        if (step.drop) return this.#store.dropHeartbeats([beat]);
        return this.#store.saveHeartbeats([
          { ...beat, at: epoch + 2 },
          { ...beat, at: epoch + (at % 5), details: `"${at}b"` },
        ]);
      }
      case "outcome":
        return this.#store.saveStepOutcome({ ...this.#effect(step, names), at: epoch + at, outcome: step.outcome });
      case "expire":
        await this.#store.expirePublications(epoch + step.age);
        await this.#store.expireHeartbeats(epoch + (step.age % 3));
        await this.#store.expireStepOutcomes(epoch + step.age);
        return undefined;
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
    const runs = [...new Set([...rows.map(({ run }) => run), ...Array.from({ length: runCount + 1 }, (_, each) => `${prefix}/${each}`)])];
    const byRun = <T>(read: (run: string) => Promise<T>) => Promise.all(runs.map(read));
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
        .map(({ run, message, fact, shard }) => [run, message, this.#ordered(fact), shard - this.#first]),
      timers: timers.map(({ run, effect, due, shard }) => [run, effect, due, shard - this.#first]),
      inboxes: await byRun(async (run) =>
        (await this.#store.readInbox({ tenant, run }, { limit: 3 })).map(({ message, fact }) => [message, this.#ordered(fact)]),
      ),
      letters: await this.#store.listDeadLetters(tenant, {}, { limit: 1_000 }),
      closed: (await this.#store.listClosedBefore(epoch + 1_000, { after: { tenant, run: "" }, limit: 1_000 }))
        .filter((row) => row.tenant === tenant)
        .map(({ run }) => run),
      heartbeats: await byRun((run) => this.#store.readHeartbeats({ tenant, run })),
      outcomes: await byRun((run) => this.#store.readStepOutcomes({ tenant, run })),
    };
  }

  /** A fact with the order of its publication in place of the position, which differs from store to store. */
  #ordered(fact: string): unknown {
    const { position, ...rest } = JSON.parse(fact) as { position?: number };
    return position === undefined ? fact : { ...rest, order: this.#positions.indexOf(position) };
  }

  #effect(step: { readonly run: number; readonly effect: number }, { tenant, prefix }: Names): EffectKey {
    return { tenant, run: `${prefix}/${step.run}`, effect: `e-${step.effect}` };
  }

  #publication({ id, name, key: each }: Step & { kind: "publish" }, at: number, { tenant }: Names): Publication {
    const keyed = each !== undefined && { key: `key-${each}` };
    return { tenant, id: `p-${id}`, name: `name-${name}`, ...keyed, digest: `d-${at}`, fact: `{"p":${id},"at":${at}}`, at: epoch + at };
  }

  #import(step: Step & { kind: "import" }, at: number, { tenant, prefix }: Names): RunImport {
    const closed = step.status === "Completed" || step.status === "Failed";
    return {
      row: {
        tenant,
        run: `${prefix}/${step.run}`,
        id: `id-${step.id}`,
        shard: this.#shard(step.run),
        workflow: "flow",
        version: "3",
        status: step.status,
        busy: !closed && step.turns % 2 === 0,
        tail: step.turns,
        createdAt: epoch + at,
        ...(closed && { closedAt: epoch + at + 1 }),
      },
      attributes: step.turns === 1 ? { imported: true } : {},
      turns: Array.from({ length: step.turns }, (_, turn) => ({ seq: turn + 1, count: 1, at: epoch + at, node: "n", events: `[${at}]` })),
      inbox: [{ message: "imported", fact: `{"at":${at}}` }],
    };
  }

  #waits(plans: TurnPlan["waits"]): readonly WaitWrite[] {
    return plans.map(({ effect, name, key: each, after }) => ({
      effect: `e-${effect}`,
      name: `name-${name}`,
      ...(each !== undefined && { key: `key-${each}` }),
      after: this.#positions[after - 1] ?? 0,
    }));
  }

  #letters(plans: TurnPlan["letters"], at: number): readonly DeadLetterWrite[] {
    return plans.map(({ effect, kind }) => ({ effect: `e-${effect}`, kind, name: `n-${kind}`, attempts: at, failure: `{"turn":${at}}` }));
  }

  get #first(): number {
    return this.#fence[0]?.shard ?? 0;
  }

  get #at() {
    return { store: this.#store, group: this.#group, size: shardCount };
  }

  async #claim(owner: string): Promise<unknown> {
    const { granted, held } = await claim(this.#at, owner, {
      dead: ["owner-0", "owner-1"],
      give: owner === this.#owner ? this.#fence : [],
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
      at: epoch + at,
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
      consumed: plan.consumed.map((message) => (message === 3 ? `publication:p-${at % 12}` : `m-${message}`)),
      waits: this.#waits(plan.waits),
      waitsDone: plan.waitsDone.map((effect) => `e-${effect}`),
      deadLetters: this.#letters(plan.letters, at),
      deadLettersDone: plan.lettersDone.map((effect) => `e-${effect}`),
    };
  }
}
