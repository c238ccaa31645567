/**
 * One program on the real engine, step by step, with or without interruptions, and the models beside it.
 *
 * 1. After every step all histories agree with their models.
 * 2. Nothing is lost: an outcome is recorded or its attempt is made again, what was acknowledged is in history once, nothing that is due is left.
 * 3. Write before act: while a commit is held up, nothing of its turn is acknowledged or executed.
 * 4. Outcomes of one run are recorded in the order in which they came.
 * 5. A child has a run, tells its parent of its end, and ends by its policy when its parent no longer waits for it.
 * 6. In the end every run has ended, and `checkEndOfCase` holds.
 */
import assert from "node:assert/strict";
import { memoryStore, severalDatabases } from "@wovyr/server/internal";
import { checkEndOfCase, createFaultyStore, createTestEnvironment, FaultPlan, type TestEnvironment } from "@wovyr/testing";
import { endAttempt, forgetAttempts, isBlocked } from "./activities.ts";
import { historyText, ModelledRun, type Parent } from "./history.ts";
import { type Interruption, RefusingStore } from "./interruptions.ts";
import { events, interpreted, type Program, programText } from "./program.ts";
import { breakUp, type Choice, draw, firstChoice, type Step, stepText } from "./steps.ts";

export type Scenario = { readonly program: Program; readonly choices: readonly Choice[]; readonly seed: number };
export type Interruptions = {
  readonly evictAlways: boolean;
  readonly each: readonly Interruption[];
  /** Attempts of one activity that crashes may take; what would take more does not happen. */
  readonly losses?: number;
};

export type Played = { readonly steps: number; readonly turns: number; readonly interruptions: number };

/** Throws with the whole story when anything does not hold. */
export async function play(scenario: Scenario, interruptions: Interruptions = { evictAlways: false, each: [] }): Promise<Played> {
  forgetAttempts();
  const plan = new FaultPlan();
  const refusing = new RefusingStore();
  // Every third scenario is played over two databases, with children in both.
  const several = scenario.choices.length % 3 === 2;
  await using env = await createTestEnvironment({
    workflows: [interpreted],
    autoSkip: false,
    seed: scenario.seed,
    evictAlways: interruptions.evictAlways,
    store: createFaultyStore(refusing.around(several ? severalDatabases([memoryStore(), memoryStore()]) : memoryStore()), plan),
  });
  const { runId } = await env.start(interpreted, { part: scenario.program, name: "0" }, { id: "root" });
  const played = new Case(env, plan, refusing, runId, interruptions.losses ?? 10);
  try {
    return await played.play(scenario.choices, interruptions.each);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n\n${played.story(scenario.program)}`, { cause: error });
  }
}

/** A message from outside, and what its sender knows of it. */
type Message = Step & { readonly kind: "event" | "cancel" | "terminate" | "pause" | "resume" };
type Delivery = { readonly step: Message; answer: "none" | "accepted" | "refused" | "unknown" };

/** An attempt that a step has ended. */
type Ended = { readonly run: ModelledRun; readonly effect: string; readonly attempt: number };

const stepLimit = 150;
const noInterruption: Interruption = { kind: "none", after: 0 };
/** Steps that are taken together, at most. */
const togetherLimit = 3;
/** Macrotasks in which a turn is made and reaches its commit. */
const turnTime = 6;

class Case {
  readonly #env: TestEnvironment;
  readonly #plan: FaultPlan;
  readonly #refusing: RefusingStore;
  readonly #runs: ModelledRun[];
  readonly #losses: number;
  readonly #told: string[] = [];
  #deliveries: Delivery[] = [];
  #ended: Ended[] = [];
  #steps = 0;
  #sent = 0;

  constructor(env: TestEnvironment, plan: FaultPlan, refusing: RefusingStore, run: string, losses: number) {
    this.#env = env;
    this.#plan = plan;
    this.#refusing = refusing;
    this.#losses = losses;
    this.#runs = [new ModelledRun(run, "root")];
  }

  async play(choices: readonly Choice[], interruptions: readonly Interruption[]): Promise<Played> {
    const [left, ahead] = [[...choices], [...interruptions]];
    let happened = 0;
    await this.#rest();
    while (this.#runs.some((run) => run.open)) {
      assert.ok(this.#steps < stepLimit, `it goes on after ${stepLimit} steps`);
      const next = ahead.shift();
      const interruption = next === undefined || this.#tooMuch(next) ? noInterruption : next;
      if (interruption.kind !== "none") happened += 1;
      await this.#interrupted(interruption, left);
    }
    await checkEndOfCase(this.#env);
    return { steps: this.#steps, turns: this.#runs.reduce((sum, run) => sum + run.turns.length, 0), interruptions: happened };
  }

  story(program: Program): string {
    return [`program: ${programText(program)}`, "steps:", ...this.#told.map((line) => `  ${line}`), ...this.#runs.map(historyText)].join(
      "\n",
    );
  }

  // ── steps ──────────────────────────────────────────────────────────────────────────────────────────────

  #tooMuch({ kind }: Interruption): boolean {
    return kind.startsWith("crashed") && this.#runs.some((run) => run.losses >= this.#losses);
  }

  /** Takes the next steps while something happens to the engine, and lets everything come of both. */
  async #interrupted({ kind, after }: Interruption, left: Choice[]): Promise<void> {
    if (kind !== "none") this.#told.push(`(${kind}${kind === "crashed during" ? ` after ${after} macrotasks` : ""})`);
    switch (kind) {
      case "none":
        this.#take(left);
        break;
      case "evicted":
        await this.#env.evict();
        this.#take(left);
        break;
      case "crashed before":
        await this.#crash();
        await this.#rest();
        this.#take(left);
        break;
      case "crashed during":
        this.#take(left);
        await macrotasks(after);
        await this.#crash();
        break;
      case "commit failed":
      case "commit done, answer lost":
        this.#plan.fail("commit", { at: kind === "commit failed" ? "before" : "after" });
        this.#take(left);
        break;
      case "commit refused":
        this.#refusing.refusals = 1;
        this.#take(left);
        break;
      case "commit held":
      case "crashed while commit was held":
        await this.#held(kind, left);
    }
    await this.#rest();
    this.#plan.clear();
    this.#refusing.refusals = 0;
  }

  /** Takes a step whose commits, and those of all that it sets going, are held up for a while. */
  async #held(kind: Interruption["kind"], left: Choice[]): Promise<void> {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#plan.watch("commit", () => released);
    const executed = this.#env.executions.total;
    this.#takeOne(left.shift() ?? firstChoice, true);
    await macrotasks(turnTime);
    assert.equal(this.#env.executions.total, executed, "an attempt began before the commit that records it");
    for (const { answer } of this.#deliveries) assert.equal(answer, "none", "a message was answered before the commit that records it");
    // Commits of what follows are not held.
    this.#plan.clear();
    if (kind === "commit held") release();
    else await this.#crash();
  }

  #take(left: Choice[]): void {
    for (let taken = 0; taken < togetherLimit; taken++) {
      const choice = left.shift() ?? firstChoice;
      if (this.#takeOne(choice, taken === 0) === undefined || !choice.together) return;
    }
  }

  /** Sets a step going; nothing has come of it yet. Without `must`, there may be none. */
  #takeOne(choice: Choice, must: boolean): Step | undefined {
    const step = draw(choice, this.#runs, this.#sent) ?? (must ? breakUp(this.#runs) : undefined);
    if (step === undefined) {
      assert.ok(!must || !this.#runs.some((run) => run.open), "nothing can happen, and runs are open");
      return undefined;
    }
    this.#steps += 1;
    this.#told.push(stepText(step));
    switch (step.kind) {
      case "activity": {
        const { run, effect, ending } = step;
        const open = run.model.open.get(effect);
        if (open?.kind === "activity") this.#ended.push({ run, effect, attempt: open.attempt });
        endAttempt(run.run, effect, ending);
        break;
      }
      case "time":
        this.#env.clock.advanceTo(step.at);
        break;
      case "event":
        this.#sent += 1;
        this.#deliver({ step, answer: "none" });
        break;
      default:
        this.#deliver({ step, answer: "none" });
    }
    return step;
  }

  #deliver(delivery: Delivery): void {
    if (!this.#deliveries.includes(delivery)) this.#deliveries.push(delivery);
    delivery.answer = "none";
    this.#send(delivery.step).then(
      () => {
        delivery.answer = "accepted";
      },
      (error: { code?: string }) => {
        if (error.code === "INSTANCE_CLOSED") delivery.answer = "refused";
        else if (error.code === "UNREACHABLE" || error.code === "STORE_UNAVAILABLE") delivery.answer = "unknown";
        else throw error;
      },
    );
  }

  #send(step: Message): Promise<void> {
    const handle = this.#env.handle(interpreted, step.run.id);
    if (step.kind === "event") return handle.send(events[step.event], step.n, { idempotencyKey: `event-${step.n}` });
    if (step.kind === "pause" || step.kind === "resume") return handle[step.kind]();
    return step.kind === "cancel" ? handle.cancel({ mode: step.mode }) : handle.terminate();
  }

  async #crash(): Promise<void> {
    this.#env.crash();
    forgetAttempts();
    this.#ended = [];
    await this.#env.restart();
  }

  // ── what has come of them ──────────────────────────────────────────────────────────────────────────────

  /** Waits until nothing moves, sees outages through, and checks. What was not answered is said again, as a client does. */
  async #rest(): Promise<void> {
    for (;;) {
      await this.#env.settle();
      for (let tries = 0; !this.#env.engine.ready || this.#env.engine.journal.busy; tries++) {
        assert.ok(tries < 100, "the engine does not come back");
        this.#env.clock.advanceTo(this.#env.clock.next ?? this.#env.clock.now());
        await this.#env.settle();
      }
      await this.#read();
      this.#checkAnswers();
      const unknown = this.#deliveries.filter((delivery) => delivery.answer === "unknown" && !arrived(delivery.step));
      if (unknown.length === 0) break;
      for (const delivery of unknown) this.#deliver(delivery);
    }
    this.#deliveries = [];
    this.#checkEnded();
    for (const run of this.#runs) this.#checkRun(run);
  }

  async #read(): Promise<void> {
    const { bareStore, engine } = this.#env;
    for (const run of this.#runs) {
      const rows = await bareStore.readHistory({ tenant: "default", run: run.run }, run.next, Number.MAX_SAFE_INTEGER);
      for (const turn of await engine.rows.decodeAll(rows)) this.#runs.push(...run.take(turn));
    }
  }

  #checkAnswers(): void {
    for (const { step, answer } of this.#deliveries) {
      assert.notEqual(answer, "none", `nobody answered: ${stepText(step)}`);
      if (answer === "accepted") assert.ok(arrived(step), `acknowledged and not in history: ${stepText(step)}`);
      if (answer === "refused") assert.ok(step.run.closed, `refused although the run is open: ${stepText(step)}`);
    }
  }

  #checkEnded(): void {
    for (const { run, effect, attempt } of this.#ended) {
      const open = run.model.open.get(effect);
      assert.ok(
        open?.kind !== "activity" || open.attempt !== attempt || open.retryAt !== undefined || run.model.isUnheard(effect),
        `the outcome of attempt ${attempt} of ${run.id} ${effect} was lost`,
      );
    }
    for (const run of new Set(this.#ended.map((ended) => ended.run))) {
      const places = this.#ended.filter((ended) => ended.run === run).map(({ effect, attempt }) => run.placeOf(effect, attempt));
      const recorded = places.filter((place) => place !== undefined);
      assert.deepEqual(
        recorded,
        [...recorded].sort((a, b) => a - b),
        `outcomes of ${run.id} were not recorded in the order in which they came`,
      );
    }
    this.#ended = [];
  }

  #checkRun(run: ModelledRun): void {
    run.settle();
    assert.equal(new Set(run.events).size, run.events.length, `an event came twice: ${run.events}`);
    for (const [effect, open] of run.model.paused ? [] : run.model.open) {
      const what = `${run.id} ${effect}`;
      if (open.kind === "timer") assert.ok(open.due > this.#env.clock.now(), `timer ${what} was due and did not fire`);
      // After crashes, attempts may have to wait until they can run alone.
      if (open.kind !== "activity" || this.#env.crashes > 0) continue;
      if (open.retryAt === undefined) assert.ok(isBlocked(run.run, effect), `nobody runs ${what}`);
      else assert.ok(open.retryAt > this.#env.clock.now(), `the retry of ${what} was due and was not made`);
    }
    if (run.parent !== undefined) this.#checkChild(run, run.parent);
  }

  #checkChild(child: ModelledRun, { run, effect, policy }: Parent): void {
    if (run.model.isUnheard(effect)) return;
    const awaited = run.model.open.has(effect);
    const entered = child.turns.length > 0;
    if (awaited)
      assert.ok(entered && !child.closed, `${run.id} waits for its child ${child.id}, which ${entered ? "has ended" : "never began"}`);
    else if (policy === "terminate") assert.ok(!entered || child.closed, `${child.id} lives on, and its parent does not wait for it`);
    else if (policy === "cancel")
      assert.ok(!entered || child.closed || child.model.asked, `${child.id} was not cancelled, and its parent does not wait for it`);
    else assert.ok(entered, `${child.id} never began, and it was to outlive its parent`);
  }
}

/** Whether a message is in history, or came too late to be. */
function arrived(step: Message): boolean {
  const { closed, events: seen, model } = step.run;
  if (step.kind === "event") return seen.includes(step.n) || closed;
  if (step.kind === "pause" || step.kind === "resume") return step.run.said[step.kind] > step.before || closed;
  return step.kind === "cancel" ? model.asked || closed : closed;
}

async function macrotasks(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
}
