/**
 * Brings runs into memory: reads their history, replays it, and sees to what happened to them while they were not there.
 *
 * 1. Items for a run that is being loaded wait here, in order.
 * 2. An attempt that history shows as running and that this process does not run was lost with another process (attempts.ts).
 * 3. A run whose code does not match its history, or has blocked processes before, comes in without its code: parked. The latter is known of all runs
 *    before any is read.
 * 4. What was begun before this node lost shards is begun again when it ends: the run may be another node's, or may have been meanwhile.
 * 5. What was kept for a parked run is recorded before it goes on.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import { failureOf, sitesAreRemembered } from "@wovyr/sdk/internal";
import { isCopy } from "./copied-run.ts";
import { Diagnosis, type VoidTurn } from "./diagnosis.ts";
import type { Engine } from "./engine.ts";
import { handedOver } from "./hand-over.ts";
import { Instance } from "./instance.ts";
import { type LoadedRun, Loader } from "./loader.ts";
import { comesAgainTo, type Mail } from "./mail.ts";
import { ofOtherGroup } from "./ownership-errors.ts";
import { placesOf } from "./places.ts";
import { type Heartbeat, type InstanceRow, isOpenStatus, type RunAddress } from "./ports/store.ts";
import { workflowLabel } from "./registry.ts";
import { Replay } from "./replay.ts";
import { strikeLimit, waitAfter } from "./strikes.ts";
import { versionMissing } from "./version-missing.ts";

export class Revival {
  readonly #engine: Engine;
  /** By database. */
  readonly #loaders: readonly Loader[];
  readonly #loading = new Map<string, Mail[]>();
  /** Parked runs that are to be tried once more. */
  readonly #chances = new Set<string>();
  /** Runs that were parked here for what they did to other processes: another one may try them. */
  readonly #blocking = new Set<string>();
  readonly #careful = new Set<string>();
  /** Outcomes of attempts that are known to be in inboxes, and are still to be delivered. */
  readonly #kept = new Map<number, ReadonlySet<string>>();
  #term = 0;

  constructor(engine: Engine) {
    const { store, clock, loop } = engine.options;
    this.#engine = engine;
    this.#loaders = placesOf(store).map(() => new Loader({ store, rows: engine.rows, clock, loop }));
  }

  /** The run is parked, and its code may try again when it is loaded. */
  giveChance(run: string): void {
    this.#chances.add(run);
  }

  /** Attempts whose outcomes are in inboxes are not lost: those of one database, in place of what was said of it before. */
  expect(place: number, outcomes: readonly { readonly run: string; readonly message: string }[]): void {
    if (outcomes.length === 0) this.#kept.delete(place);
    else this.#kept.set(place, new Set(outcomes.map(({ run, message }) => keptKey(run, message))));
  }

  /** Whether a message is in the inbox of a run, and still to be delivered. */
  expects(run: string, message: string): boolean {
    for (const kept of this.#kept.values()) if (kept.has(keptKey(run, message))) return true;
    return false;
  }

  /** The run's next turns take one item each, until one of them shows what the store does not take. */
  beCareful(run: string): void {
    this.#careful.add(run);
  }

  /** The run has come to rest: whether it had been handled with care. */
  endCare(run: string): boolean {
    return this.#careful.delete(run);
  }

  has(run: string): boolean {
    return this.#loading.has(run);
  }

  get idle(): boolean {
    return this.#loading.size === 0;
  }

  /** The runs that are being loaded. */
  get loading(): readonly string[] {
    return [...this.#loading.keys()];
  }

  /** What is being loaded may be of shards that are this node's no more. */
  shardsLost(): void {
    this.#term += 1;
  }

  /** Keeps items where those of a run that is being loaded wait, so that what arrives meanwhile comes after them; `resume` tells when to go on, and how. */
  hold(key: RunAddress, mail: Mail[], resume: Promise<() => WovyrError | undefined>): void {
    this.#loading.set(key.run, mail);
    void resume.then((refusal) => {
      if (this.#loading.get(key.run) !== mail) return;
      const reason = refusal();
      if (reason === undefined) void this.#load(key);
      else for (const item of this.#take(key)) item.receipt?.refused(reason);
    });
  }

  /** What is being loaded is void. */
  clear(reason: WovyrError): void {
    this.#term += 1;
    for (const mail of this.#loading.values()) for (const item of mail) item.receipt?.refused(reason);
    this.#loading.clear();
  }

  #loaderOf({ shard }: RunAddress): Loader {
    const { databases } = this.#engine.options.store;
    const place = databases === undefined || shard === undefined ? 0 : databases.placeOf(shard);
    return this.#loaders[place] as Loader;
  }

  stop(): void {
    for (const loader of this.#loaders) loader.stop();
  }

  /** A run that took no step takes steps again: it begins with what was kept for it, in order, and what arrives meanwhile comes after that. */
  reopen(instance: Instance): void {
    const { identity, state } = instance;
    if (state.parked !== undefined) this.giveChance(identity.run);
    const arrived = instance.mailbox;
    instance.mailbox = [];
    this.#engine.table.remove(instance);
    this.#loading.set(identity.run, arrived);
    void this.#engine.heldMail.settled(identity.run).then(() => {
      if (this.#loading.get(identity.run) === arrived) void this.#load(identity, { inbox: true });
    });
  }

  /** Brings a run into memory, if it is not there. Resolves when it is, or when there is no such run. */
  load(key: RunAddress, mail?: Mail): Promise<void> {
    const waiting = this.#loading.get(key.run);
    if (waiting !== undefined) {
      if (mail !== undefined) waiting.push(mail);
      return Promise.resolve();
    }
    if (this.#engine.table.get(key.run) !== undefined) return Promise.resolve();
    this.#loading.set(key.run, mail === undefined ? [] : [mail]);
    return this.#load(key);
  }

  /** Brings a run that was created without this node into memory, with its first messages. */
  begin(key: RunAddress): Promise<void> {
    if (this.#loading.has(key.run) || this.#engine.table.get(key.run) !== undefined) return Promise.resolve();
    this.#loading.set(key.run, []);
    return this.#load(key, { inbox: true });
  }

  #load(key: RunAddress, options?: { readonly inbox: boolean }): Promise<void> {
    const term = this.#term;
    const { strikesKnown } = this.#engine.shards;
    const read = () => this.#loaderOf(key).load(key, options);
    return (strikesKnown === undefined ? read() : strikesKnown.then(read)).then(
      (loaded) => (term === this.#term ? this.#loaded(key, loaded, options) : this.#loadAgain(key, options)),
      (error) => this.#notLoaded(key, error),
    );
  }

  /** Unless nobody waits for it any more. */
  #loadAgain(key: RunAddress, options?: { readonly inbox: boolean }): Promise<void> {
    return this.#loading.has(key.run) ? this.#load(key, options) : Promise.resolve();
  }

  #take(key: RunAddress): Mail[] {
    const mail = this.#loading.get(key.run) ?? [];
    this.#loading.delete(key.run);
    return mail;
  }

  #notLoaded(key: RunAddress, error: unknown): void {
    if (!this.#engine.closed) this.#engine.options.log.error("a run could not be loaded", { run: key.run, error });
    const refusal = error instanceof WovyrError ? error : new WovyrError("the run could not be loaded", { cause: error });
    for (const mail of this.#take(key)) mail.receipt?.refused(refusal);
  }

  #loaded(key: RunAddress, loaded: LoadedRun | undefined, options: { readonly inbox: boolean } | undefined): Promise<void> | void {
    if (loaded === undefined) {
      const mail = this.#take(key);
      this.#engine.dropMessages(key, mail);
      for (const item of mail)
        item.receipt?.refused(
          new ApiError(`There is no run "${key.run}".`, {
            code: "INSTANCE_NOT_FOUND",
          }),
        );
      return;
    }
    const refusal = this.#notHere(key, loaded.row);
    if (refusal !== undefined) {
      for (const item of this.#take(key)) item.receipt?.refused(refusal);
      return;
    }
    const mail = this.#loading.get(key.run) ?? [];
    // What is said to a run that was created and not begun yet comes after its start, which is in its inbox.
    const unbegun = loaded.row.tail === 0 && isOpenStatus(loaded.row.status) && mail[0]?.fact.type !== "InstanceStarted";
    if (unbegun && options?.inbox !== true) return this.#load(key, { inbox: true });
    this.#loading.set(key.run, [...loaded.inbox, ...mail]);
    return this.#revive(loaded);
  }

  /** Why a run is not to be brought into memory here. */
  #notHere({ run }: RunAddress, { shard, workflow, version, closedAt }: InstanceRow): WovyrError | undefined {
    const { ownership, handOver, options } = this.#engine;
    const { members } = ownership;
    if (!ownership.owns(shard))
      return members.has(shard)
        ? new ApiError(`Run "${run}" belongs to another orchestrator; try again.`, { code: "NOT_OWNER" })
        : ofOtherGroup(`Run "${run}"`, options.group);
    const waiting = this.#loading.get(run) ?? [];
    if (handOver.isClosing(shard) && waiting.length > 0 && waiting.every(comesAgainTo)) return handedOver();
    if (closedAt !== undefined || options.registry.find(workflow, version) !== undefined) return undefined;
    const label = workflowLabel(workflow, version);
    return members.othersHave(label) && handOver.offer(shard, label) ? handedOver() : undefined;
  }

  /** Replays a loaded run and gives it the items that waited for it. */
  #revive({ row, turns, weight }: LoadedRun): Promise<void> {
    const definition = this.#engine.options.registry.find(row.workflow, row.version);
    const instance = new Instance(
      {
        tenant: row.tenant,
        run: row.run,
        id: row.id,
        shard: row.shard,
        workflow: row.workflow,
        version: row.version,
        correlationId: row.correlationId,
        parent: row.parent,
      },
      row.closedAt === undefined ? definition : undefined,
      this.#engine.host,
    );
    instance.phase = "loading";
    if (definition === undefined && row.closedAt === undefined)
      this.#engine.options.log.warn(
        `workflow "${row.workflow}" version "${row.version}" is not registered here; its runs wait until it is`,
        {
          run: row.run,
        },
      );
    if (this.#careful.has(row.run)) instance.mailPerTurn = 1;
    const blocked = row.closedAt === undefined ? this.#blocked(row, turns) : undefined;
    const term = this.#term;
    return new Promise((resolve) => {
      const enter = (settle: () => void) => {
        if (term !== this.#term) {
          resolve(this.#loadAgain(row));
          return;
        }
        instance.weight = weight;
        instance.phase = "idle";
        instance.mailbox = this.#take(instance.identity);
        this.#engine.table.add(instance);
        if (instance.state.awaitsAdmission) this.#engine.admissions.settled(instance);
        settle();
        this.#engine.queue(instance);
        resolve();
      };
      if (blocked !== undefined) {
        enter(() => this.#withoutCode(instance, turns, blocked));
        return;
      }
      this.#engine.turns.add(
        new Replay(instance, turns, row.tail, this.#engine.turns, (failure) => {
          if (failure === undefined) this.#withWords(instance, (told) => enter(() => this.#revived(instance, told)));
          else this.diagnose(instance, turns, undefined).then((found) => enter(() => this.#withoutCode(instance, turns, found ?? failure)));
        }),
      );
    });
  }

  /** Why a run is not tried in this process; undefined when it may be. */
  #blocked(row: InstanceRow, turns: LoadedRun["turns"]): Error | undefined {
    const strikes = this.#engine.strikes.against(row);
    if (strikes < strikeLimit) return undefined;
    const failure = neverYields(row.workflow, strikes);
    const parking = turns.findLast(({ events }) =>
      events.some((fact) => fact.type === "Parked" && fact.failure.message === failure.message),
    );
    if (parking === undefined) this.#blocking.add(row.run);
    else if (!this.#blocking.has(row.run) && this.#engine.now() >= parking.at + waitAfter(strikes)) return undefined;
    this.#chances.delete(row.run);
    return failure;
  }

  /** The run's code cannot be run: only its state is known, and it is parked unless it was already. */
  #withoutCode(instance: Instance, turns: LoadedRun["turns"], failure: Error): void {
    const { weight } = instance;
    instance.forget();
    instance.weight = weight;
    for (const turn of turns) instance.state.apply(turn);
    if (instance.state.parked?.message === failure.message) return;
    const { workflow, id, run } = instance.identity;
    this.#engine.options.log.error(`the run is parked: ${failure.message}`, { workflow, instance: id, run });
    instance.mailbox.unshift({ fact: { type: "Parked", failure: failureOf(failure) } });
  }

  /** Goes on with what attempts that may be lost had told last; that is asked for only where it may matter. */
  #withWords(instance: Instance, goOn: (told: readonly Heartbeat[]) => void): void {
    if (instance.state.closed || !this.#engine.attempts.mayHaveTold(instance)) {
      goOn([]);
      return;
    }
    this.#loaderOf(instance.identity)
      .heartbeats(instance.identity)
      .then(goOn, (error) => {
        this.#engine.options.log.warn("what attempts of the run had told last could not be read", { run: instance.identity.run, error });
        goOn([]);
      });
  }

  /** What a loaded run needs before anything else: a second chance, or that attempts died with their process. */
  #revived(instance: Instance, told: readonly Heartbeat[]): void {
    if (instance.state.closed || instance.execution === undefined) return;
    const { parked, paused } = instance.state;
    if (paused !== undefined) return;
    if (parked !== undefined && !this.#chances.delete(instance.identity.run)) return;
    const resumed: Mail[] = parked === undefined ? [] : [{ fact: { type: "Resumed" } }];
    // Attempts of a history that was copied here were made elsewhere: they are not lost, they begin.
    const isCopied = instance.mailbox.some(({ fact }) => isCopy(fact));
    const lost = isCopied ? [] : this.#engine.attempts.lost(instance, told);
    const kept = parked === undefined || isCopied || instance.state.start === undefined ? 0 : keptCount(instance.mailbox);
    instance.mailbox.splice(kept, 0, ...resumed, ...lost);
  }

  /** The lines that an open run waits at; empty when its code is not here. */
  async waitingAt(row: InstanceRow): Promise<readonly string[]> {
    if (!isOpenStatus(row.status) || row.status === "parked" || this.#engine.unavailable !== undefined) return [];
    if (sitesAreRemembered()) {
      await this.load(row);
      const instance = this.#engine.table.get(row.run) ?? (await this.replayed(row).catch(() => undefined));
      return instance?.execution?.waitingAt() ?? [];
    }
    const loaded = await this.#loaderOf(row).load(row);
    const instance = this.#engine.newInstance({ ...row });
    const execution = instance.newExecution();
    if (loaded === undefined || execution === undefined) return [];
    await new Promise<void>((resolve) =>
      this.#engine.turns.add(new Diagnosis(execution, loaded.turns, undefined, this.#engine.turns, resolve)),
    );
    return execution.waitingAt();
  }

  /** A run, closed or not, replayed apart from the one that is at work. Throws when its code is not here or does not match its history. */
  async replayed(row: InstanceRow): Promise<Instance> {
    const loaded = await this.#loaderOf(row).load(row);
    const instance = this.#engine.newInstance({ ...row });
    if (loaded === undefined || instance.definition === undefined) throw versionMissing(row);
    const failure = await new Promise<Error | undefined>((resolve) =>
      this.#engine.turns.add(new Replay(instance, loaded.turns, row.tail, this.#engine.turns, resolve)),
    );
    if (failure !== undefined) throw new WovyrError(failure.message, { code: "INSTANCE_PARKED", cause: failure });
    return instance;
  }

  /** What went wrong, told with its line. Undefined when lines are remembered anyway, or when it does not happen again. */
  async diagnose(instance: Instance, turns: LoadedRun["turns"], next: VoidTurn | undefined): Promise<Error | undefined> {
    const execution = sitesAreRemembered() ? undefined : instance.newExecution();
    if (execution === undefined) return undefined;
    await new Promise<void>((resolve) => this.#engine.turns.add(new Diagnosis(execution, turns, next, this.#engine.turns, resolve)));
    return execution.broken;
  }

  /** What is stored of a run, without anything coming of it; undefined when there is none. */
  read(key: RunAddress, options?: { readonly inbox: boolean }): Promise<LoadedRun | undefined> {
    return this.#loaderOf(key).load(key, options);
  }

  /** The history of a run that is in memory. */
  async historyOf(key: RunAddress): Promise<LoadedRun["turns"]> {
    return (await this.read(key))?.turns ?? [];
  }
}

/** How many items of a mailbox were kept for the run: they come first. */
function keptCount(mailbox: readonly Mail[]): number {
  const arrived = mailbox.findIndex(({ inbox }) => inbox === undefined);
  return arrived < 0 ? mailbox.length : arrived;
}

const keptKey = (run: string, message: string) => `${run} ${message}`;

function neverYields(workflow: string, count: number): WovyrError {
  return new WovyrError(
    `A turn of workflow "${workflow}" ran without yielding until its process was ended, ${count} times. Look for a loop without \`yield*\` in its code, deploy a fix, and start the orchestrator again.`,
    { code: "TURN_NEVER_YIELDS" },
  );
}
