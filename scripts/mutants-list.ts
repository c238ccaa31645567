/** The faults of `mutants.ts`: small changes of one file each, and the tests that are to notice. */

export type Mutant = {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
  /** Whether its tests need a Postgres: then one is started, unless WOVYR_TEST_DATABASE_URL names one. */
  readonly postgres?: true;
};

const explored = "packages/testing/test/explore.test.ts";
const engine = "packages/testing/test/explore-every-effect.test.ts";
const programs = "packages/server/test/model/plain.test.ts";
const interrupted = "packages/server/test/model/interrupted.test.ts";
const memory = "packages/server/test/store/memory.test.ts";
const pglite = "packages/server/test/store/pglite.test.ts";
const once = "packages/server/test/engine/at-most-once.test.ts";
const limits = "packages/server/test/engine/activity-timeouts.test.ts";
const retries = "packages/server/test/engine/retries.test.ts";
const runs = "packages/server/test/engine/run-retries.test.ts";
const steps = "packages/server/test/engine/transactional.test.ts";
const committed = "packages/server/test/transactional/steps.test.ts";
const disputed = "packages/server/test/transactional/faults.test.ts";
const paused = "packages/server/test/engine/paused-activities.test.ts";
const pauses = "packages/server/test/operations/pause.test.ts";
const pausedMessages = "packages/server/test/operations/paused-messages.test.ts";
const suspects = "packages/server/test/engine/suspects.test.ts";
const undone = "packages/server/test/engine/compensation-retries.test.ts";
const simulated = "packages/server/test/cluster/simulated.test.ts";
const handedOver = "packages/server/test/cluster/hand-over.test.ts";
const blocking = "packages/server/test/cluster/blocking-runs.test.ts";
const letters = "packages/server/test/engine/dead-letters.test.ts";
const queued = "packages/server/test/queues/queued.test.ts";
const unpolled = "packages/server/test/queues/unpolled.test.ts";

const nodes = "packages/server/test/engine/limits-of-many-nodes.test.ts";
const strategies = "packages/server/test/engine/scheduling-strategies.test.ts";
const admitted = "packages/server/test/engine/workflow-concurrency.test.ts";
const debounced = "packages/server/test/engine/debounce.test.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "a refused turn of an instance that was dropped brings a second one of its run into memory",
    file: "packages/server/src/engine/settlement.ts",
    find: "if (wasDropped) void",
    replace: "if (wasDropped && mail.length < 0) void",
    tests: [simulated],
  },
  {
    name: "blocking runs: one that has not begun goes on after its start",
    file: "packages/server/src/engine/instance.ts",
    find: "if (place <= 0 || this.state.start !== undefined) return place;",
    replace: "return place;",
    tests: [blocking],
  },
  {
    name: "blocking runs: runs are loaded before it is known which of them block",
    file: "packages/server/src/engine/revival.ts",
    find: "(strikesKnown === undefined ? read() : strikesKnown.then(read))",
    replace: "(strikesKnown === null ? strikesKnown : read())",
    tests: [blocking],
  },
  {
    name: "blocking runs: the chance of one that is held is kept for it",
    file: "packages/server/src/engine/mail.ts",
    find: '"AttemptStarted", "AttemptLost", "Resumed"]);\n\n/** Whether the next owner',
    replace: '"AttemptStarted", "AttemptLost"]);\n\n/** Whether the next owner',
    tests: [blocking],
  },
  {
    name: "blocking runs: one that goes on blocking is tried again at once by whoever takes it",
    file: "packages/server/src/engine/strikes.ts",
    find: "strikes <= strikeLimit ? 0",
    replace: "strikes > 0 ? 0",
    tests: [blocking],
  },
  {
    name: "blocking runs: what they are told is not kept first",
    file: "packages/server/src/engine/attempts.ts",
    find: "if (strikes.against(key) === 0) this",
    replace: "if (strikes.against(key) >= 0) this",
    tests: [blocking],
  },
  {
    name: "blocking runs: what is on its way into the inbox counts as lost",
    file: "packages/server/src/engine/attempts.ts",
    find: "return revival.expects(run, outcome) || heldMail.isSecuring(run, outcome);",
    replace: "return revival.expects(run, outcome) || heldMail === undefined;",
    tests: [blocking],
  },
  {
    name: "permits outlive the lease of their node: what was frozen goes on with them",
    file: "packages/server/src/engine/limits/limits.ts",
    find: "if (lane.inUse.size === 0 || lane.validUntil > now) continue;",
    replace: "if (lane.inUse.size >= 0) continue;",
    tests: [nodes],
  },
  {
    name: "permits never expire in the store",
    file: "packages/server/src/store/memory/permit-table.ts",
    find: "if (leaseUntil <= now) holdings.delete(owner)",
    replace: "if (leaseUntil < 0) holdings.delete(owner)",
    tests: [nodes],
  },
  {
    name: "permits whose grant is unknown are used",
    file: "packages/server/src/engine/limits/permit-lane.ts",
    find: "this.#permits = Math.min(this.#permits, inUse);",
    replace: "this.#permits = Math.max(this.#permits, inUse + wanted);",
    tests: [nodes],
  },
  {
    name: "what another node holds counts as free (SQL)",
    file: "packages/server/migrations/0006_policies.sql",
    find: "capacities[i] - held_by_others - uses[i]",
    replace: "capacities[i] - uses[i]",
    tests: [pglite],
  },
  {
    name: "first in, first out instead of fair",
    file: "packages/server/src/engine/scheduling/fair.ts",
    find: "const share = this.#shareOf(this.#by(waiting));",
    replace: 'const share = this.#shareOf("all");',
    tests: [strategies],
  },
  {
    name: "priorities do not age",
    file: "packages/server/src/engine/scheduling/priority.ts",
    find: "steps[waiting.priority] * this.#ageing",
    replace: "steps[waiting.priority] * this.#ageing * 1e9",
    tests: [strategies],
  },
  {
    name: "runs are admitted without counting those at work",
    file: "packages/server/src/store/memory/admission-table.ts",
    find: "if (admitted) left -= 1;",
    replace: "if (admitted) left -= 0;",
    tests: [admitted],
  },
  {
    name: "a debounced start keeps its first input",
    file: "packages/sdk/src/runtime/entrance.ts",
    find: "this.#start = restated(this.#start, later);",
    replace: "void restated(this.#start, later);",
    tests: [debounced],
  },
  {
    name: "skip the epoch check (memory store)",
    file: "packages/server/src/store/memory/shard-table.ts",
    find: "known.owner !== undefined && known.epoch === epoch) owned.add(shard)",
    replace: "known.owner !== undefined) owned.add(shard)",
    tests: [explored, engine, simulated],
  },
  {
    name: "keep what is in memory of a shard that was handed over",
    file: "packages/server/src/engine/hand-over.ts",
    find: "      this.#engine.shards.drop(gone, handedOver());\n",
    replace: "",
    tests: [handedOver],
  },
  {
    name: "act without a lease",
    file: "packages/server/src/engine/ownership.ts",
    find: "return this.#options.clock.now() < this.#validUntil;",
    replace: "return this.#validUntil > 0;",
    tests: [simulated],
  },
  {
    name: "hand shards over before their turns are durable",
    file: "packages/server/src/engine/hand-over.ts",
    find: "const settled = (await this.#quiet(shards)) && (await this.#recordLosses(shards));",
    replace: "const settled = true;",
    tests: [handedOver],
  },
  {
    name: "skip the epoch check (SQL)",
    file: "packages/server/migrations/0001_commit.sql",
    find: "s.id = f.id and s.epoch = f.epoch and s.owner is not null",
    replace: "s.id = f.id and s.owner is not null",
    tests: [pglite],
  },
  {
    name: "acknowledge before the commit",
    file: "packages/server/src/engine/settlement.ts",
    find: "  #save(instance: Instance, turn: OpenTurn, prepared: PreparedTurn): void {\n",
    replace: "  #save(instance: Instance, turn: OpenTurn, prepared: PreparedTurn): void {\n    this.#answer(instance, turn);\n",
    tests: [explored, engine],
  },
  {
    name: "deliver completions in call order",
    file: "packages/server/src/engine/instance.ts",
    find: "    this.#turnWeight = 0;\n    this.state.beginTurn(at);",
    replace:
      '    this.#turnWeight = 0;\n    const place = ({ fact }: Mail) => ("effect" in fact ? fact.effect : "");\n    this.mailbox.sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0));\n    this.state.beginTurn(at);',
    tests: [programs],
  },
  {
    name: "drop a timer on recovery",
    file: "packages/server/src/engine/timers.ts",
    find: "for (const row of rows) this.#insert(row);",
    replace: "for (const row of rows.slice(1)) this.#insert(row);",
    tests: [explored, engine],
  },
  {
    name: "run a loser's continuation",
    file: "packages/sdk/src/runtime/fiber.ts",
    find: "    this.#resumeWith(cancelled !== undefined && !this.#cancelDelivered ? this.#deliverCancel(cancelled) : outcome);",
    replace: "    this.#resumeWith(cancelled !== undefined ? { ok: true, value: undefined } : outcome);",
    tests: [programs],
  },
  {
    name: "fence only one shard of a flush (memory store)",
    file: "packages/server/src/store/memory/shard-table.ts",
    find: "    for (const { shard, epoch } of shards) {\n      const known = this.#shards[shard];\n      if (known",
    replace:
      "    for (const [at, { shard, epoch }] of shards.entries()) {\n      const known = this.#shards[shard];\n      if (at > 0) owned.add(shard);\n      else if (known",
    tests: [memory],
  },
  {
    name: "fence only one shard of a flush (SQL)",
    file: "packages/server/migrations/0001_commit.sql",
    find: "all_fenced := coalesce(cardinality(fenced), 0) = cardinality(fence_shards);",
    replace: "all_fenced := coalesce(cardinality(fenced), 0) > 0;",
    tests: [pglite],
  },
  {
    name: "drop the mailbox after an unknown outcome",
    file: "packages/server/src/engine/settlement.ts",
    find: "const mail = [...turn.mail, ...turn.held, ...instance.mailbox];\n    const wasDropped",
    replace: "const mail: Mail[] = [];\n    const wasDropped",
    tests: [explored, engine],
  },
  {
    name: "count a turn of unknown outcome as refused",
    file: "packages/server/src/engine/lane.ts",
    find: "if (row?.nonce === write.nonce && row.tail === write.tail + write.count)",
    replace: "if (row === undefined && write.count < 0)",
    tests: [explored, engine],
  },
  {
    name: "start attempts before the commit",
    file: "packages/server/src/engine/settlement.ts",
    find: "    this.#engine.journal.submit(prepared.write, (outcome) =>",
    replace:
      "    for (const effect of turn.plan.attempts.keys()) this.#engine.attempts.begin(instance, effect);\n    this.#engine.journal.submit(prepared.write, (outcome) =>",
    tests: [explored, engine, interrupted],
  },
  {
    name: "forget the inbox on recovery",
    file: "packages/server/src/engine/recovery.ts",
    find: "  await eachMessage(engine, shards, (message) => engine.deliverMessage(message));\n  await eachPage",
    replace: "  await eachPage",
    tests: ["packages/server/test/recovery/inbox.test.ts"],
  },
  {
    name: "forget busy runs on recovery",
    file: "packages/server/src/engine/recovery.ts",
    find: '  await eachPage(engine, shards, "busy", (page) => loadAll(engine, page));\n',
    replace: "",
    tests: [explored, engine],
  },
  {
    name: "take an event twice",
    file: "packages/server/src/engine/mail.ts",
    find: "if (before === messageDigest(fact)) return known;",
    replace: "if (before === messageDigest(fact)) return apply;",
    tests: [engine],
  },
  {
    name: "make an attempt again that runs once at most",
    file: "packages/server/src/engine/attempts.ts",
    find: 'semantics === "atMostOnce" || losses >= (',
    replace: "losses >= (",
    tests: [once],
  },
  {
    name: "begin an attempt that runs once at most before it is recorded",
    file: "packages/server/src/engine/attempts.ts",
    find: "this.#dispatch(instance, fact.effect, activity, () => this.#engine.deliver(instance.identity, { fact }));",
    replace: "this.#dispatch(instance, fact.effect, activity, undefined);",
    tests: [once],
  },
  {
    name: "count the time of all attempts anew after a restart",
    file: "packages/server/src/engine/attempt.ts",
    find: 'limit("scheduleToClose", this.attempt.activity.scheduledAt, scheduleToClose)',
    replace: 'limit("scheduleToClose", now, scheduleToClose)',
    tests: [limits],
  },
  {
    name: "forget the retries of the runs before",
    file: "packages/server/src/engine/turn-write.ts",
    find: "    ...(retries > 0 && { retries }),\n",
    replace: "",
    tests: [retries],
  },
  {
    name: "lose events between two attempts of a run",
    file: "packages/sdk/src/runtime/execution.ts",
    find: "...(carried.length > 0 && { carried }) };",
    replace: "};",
    tests: [runs],
  },
  {
    name: "record that a transactional step failed, and put no tombstone",
    file: "packages/server/src/engine/instance.ts",
    find: "mail.settled !== true && this.#mayBeDone(fact)",
    replace: "false && this.#mayBeDone(fact)",
    tests: [steps],
  },
  {
    name: "give a transactional step up, and put no tombstone",
    file: "packages/server/src/engine/settlement.ts",
    find: "if (turn.plan.abandoned.size > 0)",
    replace: "if (turn.plan.abandoned.size < 0)",
    tests: [steps],
  },
  {
    name: "let a former owner commit a transactional step",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "where s.id = $1::integer and s.epoch = $2::bigint and",
    replace: "where s.id = $1::integer and $2::bigint is not null and",
    tests: [disputed],
    postgres: true,
  },
  {
    name: "do a transactional step whose outcome is there",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "return row?.known === true ? endOf(row.outcome) : undefined;",
    replace: "return undefined;",
    tests: [committed],
    postgres: true,
  },
  {
    name: "commit a transactional step although an outcome or a tombstone is there",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "if (row.known === true) return endOf(row.outcome);",
    replace: "if (row.known === true) return undefined;",
    tests: [disputed],
    postgres: true,
  },
  {
    name: "take a lost COMMIT for done",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "      return this.#resolve(error);",
    replace: '      return { kind: "committed", outcome: "1" };',
    tests: [disputed],
    postgres: true,
  },
  {
    name: "leave the session of an unwanted transactional step alone",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "    connection.discard();\n    void this.#endSession();\n  }",
    replace: "    connection.discard();\n  }",
    tests: [disputed],
    postgres: true,
  },
  {
    name: "believe that the transaction of a step is still the same",
    file: "packages/server/src/store/postgres/step-transactions.ts",
    find: "and extract(epoch from now())::text = $3 for share",
    replace: "and $3::text is not null for share",
    tests: [committed],
    postgres: true,
  },
  {
    name: "a decision on what was given up before decides on it once more",
    file: "packages/server/src/engine/mail.ts",
    find: 'activity?.state === "Paused" && activity.attempt === fact.attempt',
    replace: 'activity?.state === "Paused"',
    tests: [paused],
  },
  {
    name: "keep the dead letter of what was cancelled",
    file: "packages/server/src/engine/turn-plan.ts",
    find: '      else if (activity.state === "Paused") this.#endPause(effect, state);\n',
    replace: "",
    tests: [paused],
  },
  {
    name: "decide on several of one run under one key",
    file: "packages/server/src/engine/batches.ts",
    find: "{digest(id)}`",
    replace: "`",
    tests: [letters],
  },
  {
    name: "tell a paused run's code at once",
    file: "packages/sdk/src/runtime/execution.ts",
    find: "if (this.#withheld.holds) this.#withheld.keep(fact, hear);",
    replace: "if (this.#withheld.holds && this.#closed !== undefined) this.#withheld.keep(fact, hear);",
    tests: [pauses],
  },
  {
    name: "tell what came last during a pause first",
    file: "packages/sdk/src/runtime/withheld.ts",
    find: "this.#kept.push({ fact, hear });",
    replace: "this.#kept.unshift({ fact, hear });",
    tests: [pauses],
  },
  {
    name: "take no events of a pause along when a run continues as new",
    file: "packages/sdk/src/runtime/execution.ts",
    find: ", ...this.#withheld.events",
    replace: "",
    tests: [pausedMessages],
  },
  {
    name: "let the suspect that was lost most run first",
    file: "packages/server/src/engine/suspects.ts",
    find: "other.attempt.activity.losses <= losses",
    replace: "other.attempt.activity.losses >= losses",
    tests: [suspects],
  },
  {
    name: "give a transactional step up when it begins to wait for a decision",
    file: "packages/server/src/engine/instance.ts",
    find: "fact.retryAt === undefined && fact.paused !== true",
    replace: "fact.retryAt === undefined",
    tests: [steps],
  },
  {
    name: "decide on a transactional step without giving it up",
    file: "packages/server/src/engine/instance.ts",
    find: 'fact.type === "ActivityDecided" && fact.decision !== "retry"',
    replace: 'fact.type === "ActivityDecided" && fact.decision === undefined',
    tests: [steps],
  },
  {
    name: "let those who decide at once on a letter of a run all decide",
    file: "packages/server/src/engine/dead-letters.ts",
    find: "(deciding.get(letter) ?? Promise.resolve())",
    replace: "Promise.resolve()",
    tests: [letters],
  },
  {
    name: "try a run again that was cancelled while it undid what it did",
    file: "packages/sdk/src/runtime/execution.ts",
    find: "this.#cancelling !== undefined || this.#withheld.cancel !== undefined;",
    replace: "this.#withheld.cancel !== undefined;",
    tests: [undone],
  },
  {
    name: "leave a task where it is when its outcome is taken (memory store)",
    file: "packages/server/src/store/memory/task-table.ts",
    find: "this.#settled.set(token, { at: now, digest });\n      this.remove(task);",
    replace: "this.#settled.set(token, { at: now, digest });",
    tests: [memory],
  },
  {
    name: "leave a task where it is when its outcome is taken (SQL)",
    file: "packages/server/migrations/0005_task_queues.sql",
    find: "delete from wovyr.tasks w where w.token = item.token and w.token is not null",
    replace: "update wovyr.tasks w set due = null where w.token = item.token and w.token is not null",
    tests: [pglite],
  },
  {
    name: "take what is said under the token of a lease that ended (memory store)",
    file: "packages/server/src/store/memory/task-table.ts",
    find: 'this.#leases.delete(task.token);\n    Object.assign(task, { state: "ended"',
    replace: 'Object.assign(task, { state: "ended"',
    tests: [memory, queued],
  },
  {
    name: "take what is said under the token of a lease that ended (SQL)",
    file: "packages/server/migrations/0005_task_queues.sql",
    find: "set state = 'ended', token = null, due",
    replace: "set state = 'ended', due",
    tests: [pglite],
  },
  {
    name: "give out one task more than there are places",
    file: "packages/server/src/engine/task-queues.ts",
    find: "if (round < poll.max && places",
    replace: "if (round <= poll.max && places",
    tests: [queued],
  },
  {
    name: "tell of a queue that no worker polls with every look",
    file: "packages/server/src/engine/unpolled-queues.ts",
    find: "      told.add(queue);\n",
    replace: "",
    tests: [unpolled],
  },
  {
    name: "leave it to arrivals to say that tasks wait: those from before a restart are never told of",
    file: "packages/server/src/engine/task-sweep.ts",
    find: "if (waits) this.#engine.unpolledQueues.taskWaits();",
    replace: "",
    tests: [unpolled],
  },
  {
    name: "a task that was handed back has waited since it was asked for (SQL)",
    file: "packages/server/migrations/0005_task_queues.sql",
    find: "set state = 'waiting', since = at, token",
    replace: "set state = 'waiting', token",
    tests: [pglite],
  },
  {
    name: "count the same loss of a worker twice",
    file: "packages/server/src/engine/mail.ts",
    find: "when(fact.losses === undefined || fact.losses === activity.losses)",
    replace: "apply",
    tests: [queued],
  },
  {
    name: "leave the tasks of what a run no longer waits for in their queues",
    file: "packages/server/src/engine/turn-plan.ts",
    find: "this.#abandon(effect, state);\n      this.#endTask(effect, state);",
    replace: "this.#abandon(effect, state);",
    tests: [queued],
  },
  {
    name: "have the worker decide whether an attempt is made again",
    file: "packages/server/src/engine/instance.ts",
    find: "if (activity?.queue === undefined || !isUndecided(fact)) return fact;",
    replace: "if (activity !== undefined) return fact;",
    tests: [queued],
  },
  {
    name: "commit a turn that comes alone under an old epoch",
    file: "packages/server/migrations/0001_commit.sql",
    find: "s.id = turn_shard and s.epoch = turn_epoch and",
    replace: "s.id = turn_shard and",
    tests: [pglite],
  },
  {
    name: "keep the key of a start that came alone and was refused",
    file: "packages/server/migrations/0001_commit.sql",
    find: "if create_slot is not null then\n        delete",
    replace: "if false then\n        delete",
    tests: [pglite],
  },
  {
    name: "let a first turn that comes alone and closes take an open run's id",
    file: "packages/server/migrations/0001_commit.sql",
    find: "where is_open or not exists (",
    replace: "where is_open or true or not exists (",
    tests: [pglite],
  },
  {
    name: "leave the messages of a run that closes with a turn alone",
    file: "packages/server/migrations/0001_commit.sql",
    find: "delete from wovyr.inbox r where r.tenant = turn_tenant and r.run = turn_run;",
    replace: "",
    tests: [pglite],
  },
  {
    name: "leave the waits of a run that closes with a turn alone",
    file: "packages/server/migrations/0001_commit.sql",
    find: "delete from wovyr.waits r where r.tenant = turn_tenant and r.run = turn_run;",
    replace: "",
    tests: [pglite],
  },
];
