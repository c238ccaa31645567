/**
 * What follows when the store has spoken of a turn.
 *
 * 1. Write before act: whatever a turn starts, answers or shows happens in `#committed`, after the commit that records it.
 * 2. A run stops waiting for a transactional step only when it is certain that it was not done: else the turn is void, and the run is told first.
 * 3. What was refused is void, with the state and the generators that made it; its items are delivered again to what is durable.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import { CancelledError, type EffectId, failureOf, type Incoming } from "@wovyr/sdk/internal";
import { attemptKey } from "./attempt.ts";
import { updateKey } from "./dialogue.ts";
import type { Engine } from "./engine.ts";
import { parkedNow } from "./held-mail.ts";
import type { Instance, OpenTurn } from "./instance.ts";
import type { TurnOutcome } from "./lane.ts";
import { addedByLoading, type Mail } from "./mail.ts";
import type { ChildWrite, RunAddress } from "./ports/store.ts";
import { type Start, StartRefused } from "./start.ts";
import { completionOf } from "./step-outcomes.ts";
import { childRefused, type PreparedTurn, prepareTurn } from "./turn-write.ts";

type DurableTurn = Extract<TurnOutcome, { kind: "durable" }>;

/** Facts with values from outside, which a store may refuse. */
const bringsValues: ReadonlySet<Incoming["type"]> = new Set(["ActivityCompleted", "EventReceived", "ActivityDecided"]);

const lengthWarnings = [0.9, 0.8, 0.5];

export class Settlement {
  readonly #engine: Engine;
  /** Steps whose runs were told that they were done when they gave them up, by attempt key. */
  readonly #told = new Set<string>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** A turn is complete. One without facts has nothing to write, only to answer. */
  turnEnded(instance: Instance, turn: OpenTurn): void {
    if (turn.facts.length === 0) {
      this.#answer(instance, turn);
      this.#engine.dropMessages(instance.identity, turn.mail);
      this.#keep(instance, turn);
      instance.phase = "idle";
      this.#engine.queue(instance);
      return;
    }
    instance.phase = "saving";
    if (turn.plan.abandoned.size > 0) void this.#abandon(instance, turn);
    else this.#prepare(instance, turn);
  }

  async #abandon(instance: Instance, turn: OpenTurn): Promise<void> {
    const { identity } = instance;
    const steps = [...turn.plan.abandoned];
    const outcomes = await Promise.all(steps.map(([effect]) => this.#engine.stepOutcomes.giveUp(identity, effect))).catch(() => undefined);
    if (outcomes === undefined) {
      this.#refused(instance, turn);
      return;
    }
    const done = steps.flatMap(([effect, before], index): Mail[] => {
      const outcome = outcomes[index];
      return outcome === undefined || this.#isTold(instance, effect) ? [] : completionOf(effect, before, outcome).map((fact) => ({ fact }));
    });
    if (done.length === 0) this.#prepare(instance, turn);
    else this.#overtaken(instance, turn, done);
  }

  /** Telling it helps once at most: a run whose code is not here, or is parked, cannot take it. */
  #isTold({ identity: { run, workflow, id }, execution }: Instance, effect: EffectId): boolean {
    if (execution !== undefined && !this.#told.has(attemptKey(run, effect))) return false;
    this.#engine.options.log.warn("the run ended without taking the outcome of a transactional step that was done", {
      workflow,
      instance: id,
      run,
      effect,
    });
    return true;
  }

  #forgetTold({ identity: { run } }: Instance, { facts }: OpenTurn): void {
    for (const fact of facts)
      if (fact.type === "ActivityCompleted" || fact.type === "EffectCancelled") this.#told.delete(attemptKey(run, fact.effect));
  }

  /** A step was done before its run gave it up. */
  #overtaken(instance: Instance, turn: OpenTurn, done: readonly Mail[]): void {
    const { identity } = instance;
    for (const { fact } of done) if (fact.type === "ActivityCompleted") this.#told.add(attemptKey(identity.run, fact.effect));
    instance.mailbox = [...done, ...turn.mail, ...turn.held, ...instance.mailbox];
    this.#engine.reload(instance);
  }

  #prepare(instance: Instance, turn: OpenTurn): void {
    let prepared: PreparedTurn | Promise<PreparedTurn>;
    try {
      prepared = prepareTurn(instance, turn, this.#engine);
    } catch (error) {
      this.#settle(instance, turn, undefined, { kind: "impossible", error: error as Error });
      return;
    }
    if (!(prepared instanceof Promise)) {
      this.#save(instance, turn, prepared);
      return;
    }
    prepared.then(
      (ready) => this.#save(instance, turn, ready),
      (error) => this.#settle(instance, turn, undefined, { kind: "impossible", error }),
    );
  }

  #save(instance: Instance, turn: OpenTurn, prepared: PreparedTurn): void {
    this.#engine.journal.submit(prepared.write, (outcome) => this.#settle(instance, turn, prepared, outcome));
  }

  #settle(instance: Instance, turn: OpenTurn, prepared: PreparedTurn | undefined, outcome: TurnOutcome): void {
    if (outcome.kind === "durable" && prepared !== undefined) this.#committed(instance, turn, prepared, outcome);
    else if (outcome.kind === "impossible") this.#impossible(instance, turn, outcome.error);
    else this.#refused(instance, turn);
  }

  /** The turn is durable: answer, show and start what it caused. */
  #committed(instance: Instance, turn: OpenTurn, prepared: PreparedTurn, { rejectedChildren, found }: DurableTurn): void {
    instance.create = undefined;
    if (this.#engine.strikes.any) this.#forgive(instance, turn);
    instance.weight += prepared.write.events.length;
    if (this.#engine.heartbeats.any) this.#settleHeartbeats(instance, turn);
    if (this.#told.size > 0) this.#forgetTold(instance, turn);
    this.#answer(instance, turn);
    this.#log(instance);
    this.#warnOfLength(instance, turn);
    this.#engine.hub.publish(instance.identity.run, () => ({
      run: instance.identity.run,
      seq: turn.tail + 1,
      at: turn.at,
      facts: turn.facts,
    }));
    // Another node may own it meanwhile; then that one does the rest.
    if (instance.phase === "saving") this.#startWork(instance, turn, prepared, rejectedChildren);
    if (instance.state.start?.admission !== undefined && instance.phase === "saving") this.#engine.admissions.settled(instance);
    if (found) this.#engine.inbox.deliver(instance.identity);
    this.#keep(instance, turn);
    if (turn.plan.closing !== undefined) this.#engine.waiters.tell(instance.identity.run, turn.plan.closing);
    if (this.#engine.updates.count > 0) this.#tellUpdates(instance, turn);
    if (instance.phase !== "saving") return;
    if (turn.plan.reopens && !instance.state.closed) {
      this.#engine.revival.reopen(instance);
      return;
    }
    instance.phase = "idle";
    this.#engine.queue(instance);
  }

  /** What the run could not take is kept for it. If it has ended meanwhile, it is what comes first to the one that goes on from it, or is turned away. */
  #keep(instance: Instance, { held }: OpenTurn): void {
    if (!instance.state.closed) this.#engine.heldMail.keep(instance, held);
    else if (instance.phase === "saving") instance.mailbox.unshift(...held);
    else for (const item of held) this.#engine.deliver(instance.identity, item);
  }

  /** A run that was struck has come further: what was held against it, and against first turns of its workflow, is void. */
  #forgive(instance: Instance, turn: OpenTurn): void {
    if (instance.state.parked !== undefined || turn.facts.every(({ type }) => addedByLoading.has(type))) return;
    for (const key of this.#engine.strikes.forgive(instance.identity))
      this.#engine.options.store
        .clearStrikes(key)
        .catch((error) => this.#engine.options.log.warn("strikes could not be cleared", { error }));
  }

  /** What attempts told while they ran is not needed any more when their outcome is known, which holds it. */
  #settleHeartbeats({ identity }: Instance, { facts }: OpenTurn): void {
    for (const { type, ...fact } of facts)
      if (type === "ActivityCompleted" || type === "ActivityFailed" || type === "AttemptLost" || type === "EffectCancelled")
        this.#engine.heartbeats.settled(identity, (fact as { readonly effect: string }).effect);
  }

  #answer(instance: Instance, turn: OpenTurn): void {
    turn.mail.forEach((mail, index) => {
      const verdict = turn.verdicts[index];
      if (mail.fact.type === "TimerFired" && verdict !== "done") this.#engine.timers.resolve(instance.identity.run, mail.fact.effect);
      if (!(verdict instanceof WovyrError)) mail.receipt?.accepted(verdict === "known");
      else if (mail.receipt !== undefined) mail.receipt.refused(verdict);
      // It came from the run that this one takes the place of; somebody may wait for its end.
      else if (mail.fact.type === "UpdateRequested")
        this.#engine.updates.refuse(updateKey(instance.identity.run, mail.fact.message), verdict);
    });
  }

  /** Those who wait for updates learn that one has ended, or that the run is parked and answers nothing for now. */
  #tellUpdates(instance: Instance, { facts, plan: { reset } }: OpenTurn): void {
    const { updates } = this.#engine;
    const { run } = instance.identity;
    let resetTo: string | undefined;
    for (const fact of facts) {
      if (fact === reset) resetTo = reset.run;
      if (fact.type === "UpdateCompleted" || fact.type === "UpdateFailed") {
        // Those that were open when the run was reset are answered by the one that takes its place.
        if (resetTo === undefined) updates.tell(updateKey(run, fact.message), fact);
        else updates.move(updateKey(run, fact.message), updateKey(resetTo, fact.message));
      }
      if (fact.type !== "Parked") continue;
      for (const message of instance.state.updates.keys()) updates.refuse(updateKey(run, message), parkedNow(instance));
    }
  }

  /** Long before the limit: at half of it, at four fifths, and at nine tenths. */
  #warnOfLength(instance: Instance, { tail, facts }: OpenTurn): void {
    const { history } = this.#engine.options.limits.execution;
    const passed = lengthWarnings.find((share) => tail < history * share && tail + facts.length >= history * share);
    if (passed === undefined) return;
    const { workflow, id, run } = instance.identity;
    this.#engine.options.log.warn(
      `the run has recorded ${tail + facts.length} of at most ${history} events: let it continue as new (ctx.shouldContinueAsNew), or give its work to children`,
      { workflow, instance: id, run },
    );
  }

  #log(instance: Instance): void {
    const { workflow, id, run } = instance.identity;
    for (const { level, message, data } of instance.takeLogs())
      this.#engine.options.log[level](message, {
        workflow,
        instance: id,
        run,
        ...data,
      });
  }

  #startWork(instance: Instance, turn: OpenTurn, { write, children, sends }: PreparedTurn, rejectedChildren: ReadonlySet<string>): void {
    const { plan } = turn;
    const { tenant, run, shard } = instance.identity;
    for (const effect of plan.stopped)
      this.#engine.dispatch.stop(run, effect, new CancelledError("the workflow no longer waits for this activity"));
    for (const effect of plan.timersDone) this.#engine.timers.resolve(run, effect);
    for (const [effect, due] of plan.timers) this.#engine.timers.add({ tenant, run, shard, effect, due });
    for (const effect of plan.attempts.keys()) this.#engine.attempts.begin(instance, effect);
    for (const { write, start } of children) {
      // It comes into being when it has been brought there.
      if (this.#engine.isElsewhere(write.shard, shard)) continue;
      if (rejectedChildren.has(write.run)) void this.#rejectChild({ tenant, run, shard }, write);
      else this.#startChild(tenant, write.run, write.shard, start);
    }
    if (write.successor !== undefined) void this.#engine.revival.load(write.successor.row);
    for (const send of sends) {
      const to = this.#engine.shardOf(tenant, send.id);
      if (this.#engine.isElsewhere(to, shard)) continue;
      if (this.#engine.mayEnter(to)) this.#engine.deliver({ tenant, run: send.run, shard: to }, { fact: send.fact, inbox: send.message });
      else this.#engine.wakeUps.tell([to]);
    }
  }

  /** Tells a run that its child's id is taken, and by which run. The message that is in its inbox, for the case of a crash, does not say the latter. */
  async #rejectChild(parent: RunAddress, { shard, instance: { id }, rejection }: ChildWrite): Promise<void> {
    const fact = JSON.parse(rejection.fact) as Extract<Incoming, { type: "ChildRejected" }>;
    const holder = await this.#engine.options.store.findInstance(parent.tenant, id, shard).catch(() => undefined);
    const known = holder !== undefined && holder.closedAt === undefined;
    this.#engine.deliver(parent, {
      fact: known ? { ...fact, failure: childRefused(id, holder.run) } : fact,
      inbox: rejection.message,
    });
  }

  #startChild(tenant: string, run: string, shard: number, fact: Start["fact"]): void {
    // It is in its inbox for whoever owns it.
    if (!this.#engine.mayEnter(shard)) {
      this.#engine.wakeUps.tell([shard]);
      return;
    }
    if (this.#engine.table.get(run) !== undefined || this.#engine.revival.has(run)) return;
    const { id, workflow, version, correlationId, parent } = fact;
    if (this.#engine.options.registry.find(workflow, version) === undefined)
      this.#engine.options.log.warn(
        `${parent === undefined ? "workflow" : "child workflow"} "${workflow}" version "${version}" is not registered here; it waits until it is`,
        {
          run,
          parent: parent?.id,
        },
      );
    const child = this.#engine.newInstance({
      tenant,
      run,
      shard,
      id,
      workflow,
      version,
      correlationId,
      parent,
    });
    child.execution = child.newExecution();
    child.mailbox.push({ fact, inbox: "start" });
    this.#engine.table.add(child);
    this.#engine.queue(child);
  }

  /** The store did not take the turn: what was made of it is void, its items are given to what is durable, as long as this node is its owner. */
  #refused(instance: Instance, turn: OpenTurn): void {
    const mail = [...turn.mail, ...turn.held, ...instance.mailbox];
    const wasDropped = instance.phase === "dropped";
    instance.mailbox = [];
    this.#engine.table.remove(instance);
    if (instance.create !== undefined) {
      for (const item of mail) item.receipt?.refused(new StartRefused("an identity of the new instance is taken"));
      return;
    }
    const { revival, ownership } = this.#engine;
    const ascertained = ownership.ascertain();
    if (wasDropped) void ascertained.then(() => this.#deliverAgain(instance.identity, mail));
    else
      revival.hold(
        instance.identity,
        mail,
        ascertained.then(() => () => this.#engine.unableToLoad),
      );
  }

  /** What came to nothing with an instance that was dropped while its turn was on its way: another one may be in memory by now. */
  #deliverAgain(key: RunAddress, mail: readonly Mail[]): void {
    const reason = this.#engine.unableToLoad;
    for (const item of mail) {
      if (reason === undefined) this.#engine.deliver(key, item);
      else item.receipt?.refused(reason);
    }
  }

  /** The store can never take the turn. What made it so is turned away; if that is nothing in particular, the run is parked. */
  #impossible(instance: Instance, turn: OpenTurn, error: Error): void {
    this.#engine.options.log.error("a turn cannot be stored", {
      run: instance.identity.run,
      error,
    });
    const failure = failureOf(error);
    const mail = [...turn.mail, ...turn.held, ...instance.mailbox];
    instance.mailbox = [];
    this.#engine.table.remove(instance);
    if (instance.create !== undefined) {
      for (const item of mail)
        item.receipt?.refused(
          new ApiError(`The store does not take this start: ${error.message}`, {
            code: "PAYLOAD_UNSERIALIZABLE",
          }),
        );
      return;
    }
    const reset = turn.mail.find(({ fact }) => fact === turn.plan.reset);
    const suspects = reset === undefined ? turn.mail.filter(({ fact }) => bringsValues.has(fact.type)) : [];
    if (suspects.length > 1) {
      this.#engine.revival.beCareful(instance.identity.run);
      for (const item of mail) this.#engine.deliver(instance.identity, item);
      return;
    }
    for (const item of mail) {
      const { fact } = item;
      if (fact.type === "ActivityCompleted" && suspects.includes(item))
        this.#engine.deliver(instance.identity, {
          fact: {
            type: "ActivityFailed",
            effect: fact.effect,
            attempt: fact.attempt,
            // What it returned stays what it is.
            failure: { ...failure, kind: "permanent" },
            noRetry: "permanent",
          },
          settled: true,
        });
      else if (suspects.includes(item))
        item.receipt?.refused(
          new ApiError(`The store does not take this ${fact.type === "EventReceived" ? "event" : "output"}: ${error.message}`, {
            code: "PAYLOAD_UNSERIALIZABLE",
          }),
        );
      else if (item === reset) item.receipt?.refused(new WovyrError(`The run cannot be reset: ${error.message}`, { cause: error }));
      else this.#engine.deliver(instance.identity, item);
    }
    if (suspects.length === 0 && reset === undefined) this.#engine.deliver(instance.identity, { fact: { type: "Parked", failure } });
  }
}
