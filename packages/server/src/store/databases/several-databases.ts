/**
 * A store over several databases.
 *
 * 1. A shard, and every run of it, lives in the database of its number; so does whatever belongs to a run. What names a run without its shard is looked for
 *    in all of them.
 * 2. A flush is divided by database, and its parts are written side by side. Lanes of the journal belong to databases, so that one that is away holds up only
 *    the turns of its own shards.
 * 3. Messages between runs of different databases go by outbox and inbox (relay.ts), publications are decided on in the database of their tenant
 *    (publishing.ts), a limit lives in the database of its name (limits.ts), hints and strikes in the first.
 * 4. A list that needs all of them fails when one does not answer, and says which.
 */
import { WovyrError } from "@wovyr/sdk";
import type { AdmissionAsk } from "../../engine/ports/admissions.ts";
import type { Arrival, Databases } from "../../engine/ports/databases.ts";
import type { PermitAsk, TokenAsk } from "../../engine/ports/limits.ts";
import {
  type AppRequests,
  type Beat,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPage,
  type EffectAddress,
  type Flush,
  type FlushOutcome,
  type Heartbeat,
  type Hints,
  type InboxMessage,
  type InstanceKey,
  type InstanceRow,
  type ListFilter,
  nothingDone,
  type Publication,
  type RunAddress,
  type RunImport,
  type StepOutcome,
  type StepTransactions,
  type Store,
  type StoreOptions,
  StoreUnavailableError,
  type StrikeSink,
  type TimerRow,
} from "../../engine/ports/store.ts";
import type { TaskStore } from "../../engine/ports/tasks.ts";
import { shardHash } from "../../engine/shard-of.ts";
import { compareText } from "../text-order.ts";
import { askAll, askThoseThere, findIn } from "./asking.ts";
import { Beats } from "./beats.ts";
import type { Database } from "./database.ts";
import { exchangePermits, takeTokens } from "./limits.ts";
import { mergePages } from "./merging.ts";
import { positionIn, positionOf } from "./positions.ts";
import { Publishing } from "./publishing.ts";
import { Relay } from "./relay.ts";
import { requestsOf } from "./requests.ts";
import { ownPart, rowsOf } from "./splitting.ts";
import { tasksOf } from "./tasks.ts";

/** Between two looks for what is left in outboxes, in milliseconds. */
const lookPause = 30_000;

export class SeveralDatabases implements Store {
  readonly kind: string;
  readonly databases: Databases;
  readonly tasks: TaskStore;
  readonly #databases: readonly Database[];
  readonly #options: StoreOptions;
  readonly #beats: Beats;
  readonly #relays: readonly Relay[];
  readonly #publishing: Publishing;
  readonly #requests: AppRequests;
  readonly #transactions: StepTransactions;
  readonly #listeners = new Set<(arrivals: readonly Arrival[]) => void>();
  readonly #placeOf: (shard: number) => number;
  #owned = "";
  #closed = false;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** `open` opens one that could not be reached at first. */
  constructor(kind: string, databases: readonly Database[], options: StoreOptions, open: (database: Database) => Promise<void>) {
    const { length } = databases;
    this.kind = kind;
    this.#databases = databases;
    this.#options = options;
    this.#placeOf = (shard) => shard % length;
    const isIdle = () => this.#relays.every(({ idle }) => idle) && this.#publishing.idle;
    this.databases = {
      count: length,
      get idle() {
        return isIdle();
      },
      placeOf: this.#placeOf,
      unavailable: (shard) => this.#of(shard).failure,
      homeOf: (tenant) => shardHash(tenant, "") % length,
      listen: (arrived) => {
        this.#listeners.add(arrived);
        return () => void this.#listeners.delete(arrived);
      },
    };
    const arrived = (arrivals: readonly Arrival[]) => {
      if (arrivals.length > 0) for (const listener of this.#listeners) listener(arrivals);
    };
    this.#beats = new Beats({ databases, now: options.now, placeOf: this.#placeOf, open });
    const owned = (place: number) => this.#beats.owned(place);
    this.#relays = databases.map((target) => new Relay({ target, databases, owned, arrived, log: options.log }));
    this.#publishing = new Publishing(databases, this.databases.homeOf, arrived);
    this.tasks = tasksOf(databases, this.#placeOf);
    this.#requests = requestsOf(databases);
    this.#transactions = {
      run: (step) =>
        this.#of(step.shard).ask(async ({ transactions, kind }) => {
          if (transactions === undefined) throw new WovyrError(`${kind} has no transactions to give`, { code: "TRANSACTIONS_UNSUPPORTED" });
          return transactions.run(step);
        }),
    };
  }

  /** A database answers again. */
  back(database: Database): void {
    this.#options.log.info(`the database ${database.label} answers again`);
    this.#relays[database.place]?.retry();
  }

  // ── what only some databases have ──────────────────────────────────────────────────────────────────────

  get strikes(): StrikeSink {
    return this.#first.store?.strikes ?? { kind: "none" };
  }

  get hints(): Hints | undefined {
    return this.#first.store?.hints;
  }

  get requests(): AppRequests | undefined {
    return this.#databases.some(({ store }) => store?.requests !== undefined) ? this.#requests : undefined;
  }

  get transactions(): StepTransactions {
    return this.#transactions;
  }

  // ── ownership ──────────────────────────────────────────────────────────────────────────────────────────

  async beat(beat: Beat) {
    const membership = await this.#beats.beat(beat);
    this.#lookAfterOutboxes();
    return membership;
  }

  async leave(group: string, node: string) {
    await this.#beats.leave(group, node);
  }

  /** What is in the outboxes of shards that were gained is looked for now, all of it once in a while; what could not be brought is tried again. */
  #lookAfterOutboxes(): void {
    const now = this.#options.now();
    const owned = JSON.stringify(this.#databases.map(({ place }) => this.#beats.owned(place)));
    const isDue = owned !== this.#owned || now >= this.#lookedAt + lookPause;
    if (isDue) {
      this.#owned = owned;
      this.#lookedAt = now;
      void this.#publishing.look();
    }
    for (const relay of this.#relays) {
      if (isDue) relay.look();
      else relay.retry();
    }
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────────────

  async commit(flush: Flush): Promise<FlushOutcome> {
    const parts = await Promise.all(this.#grouped(flush.turns).map(([database, turns]) => this.#commitPart(database, flush, turns)));
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return only;
    return parts.reduce(
      (sum, part) => ({
        done: new Set([...sum.done, ...part.done]),
        rejectedChildren: new Set([...sum.rejectedChildren, ...part.rejectedChildren]),
        failed: new Map([...sum.failed, ...part.failed]),
        found: new Set([...sum.found, ...part.found]),
      }),
      nothingDone(),
    );
  }

  async #commitPart(database: Database, { fence }: Flush, turns: Flush["turns"]): Promise<FlushOutcome> {
    const own = turns.map((turn) => ownPart(turn, this.#placeOf));
    const ownFence = fence.filter(({ shard }) => this.#placeOf(shard) === database.place);
    const saying = own.filter(({ outbox }) => outbox !== undefined);
    try {
      const outcome = await database.ask((store) => store.commit({ fence: ownFence, turns: own }));
      const isDone = ({ run }: Flush["turns"][number]) => outcome.done.has(run);
      // One that is refused may have been written by an earlier try, whose outcome was unknown.
      if (!saying.every(isDone)) this.#lookForAll();
      for (const turn of saying) if (isDone(turn)) this.#offer(database, turn);
      return outcome;
    } catch (error) {
      if (error instanceof StoreUnavailableError && saying.length > 0) this.#lookForAll();
      throw error;
    }
  }

  /** Something may be in an outbox that nobody has told of. */
  #lookForAll(): void {
    for (const relay of this.#relays) relay.look();
  }

  #offer(source: Database, turn: Flush["turns"][number]): void {
    const rows = rowsOf(turn);
    for (const [place, relay] of this.#relays.entries())
      relay.offer(
        source,
        rows.filter(({ target }) => target === place),
      );
  }

  async post(messages: readonly InboxMessage[]) {
    await Promise.all(this.#grouped(messages).map(([database, own]) => database.ask((store) => store.post(own))));
  }

  async drop(messages: readonly (RunAddress & { readonly message: string })[]) {
    await this.#eachOf(messages, (store, own) => store.drop(own));
  }

  // ── publications ───────────────────────────────────────────────────────────────────────────────────────

  async publish(publication: Publication) {
    return this.#publishing.publish(publication);
  }

  async expirePublications(before: number) {
    await askThoseThere(this.#databases, (store) => store.expirePublications(before));
  }

  // ── runs ───────────────────────────────────────────────────────────────────────────────────────────────

  async importRun(run: RunImport) {
    return this.#of(run.row.shard).ask((store) => store.importRun(run));
  }

  async deleteRuns(keys: readonly RunAddress[]) {
    return (await this.#eachOf(keys, (store, own) => store.deleteRuns(own))).reduce((sum, gone) => sum + gone, 0);
  }

  async listClosedBefore(before: number, page: { after?: InstanceKey; limit: number }) {
    const pages = await askAll(this.#databases, (store) => store.listClosedBefore(before, page));
    return mergePages(pages, (a, b) => compareText(a.tenant, b.tenant) || compareText(a.run, b.run), page.limit);
  }

  async findInstance(tenant: string, id: string, shard?: number) {
    if (shard !== undefined) return this.#of(shard).ask((store) => store.findInstance(tenant, id, shard));
    const found = (await askAll(this.#databases, (store) => store.findInstance(tenant, id))).filter((row) => row !== undefined);
    return found.find(({ closedAt }) => closedAt === undefined) ?? found.sort((a, b) => compareText(b.run, a.run))[0];
  }

  async getInstance(key: RunAddress) {
    return findIn(this.#where(key), (store) => store.getInstance(key));
  }

  async findStartKey(tenant: string, workflow: string, key: string, shard?: number) {
    const likely = shard === undefined ? undefined : this.#of(shard);
    const ask = (store: Store) => store.findStartKey(tenant, workflow, key);
    const known = await likely?.ask(ask);
    return (
      known ??
      findIn(
        this.#databases.filter((database) => database !== likely),
        ask,
      )
    );
  }

  async dropStartKey(tenant: string, workflow: string, key: string, run: string) {
    await askAll(this.#databases, (store) => store.dropStartKey(tenant, workflow, key, run));
  }

  async expireStartKeys(before: number) {
    await askThoseThere(this.#databases, (store) => store.expireStartKeys(before));
  }

  async loadInstances(keys: readonly RunAddress[]) {
    return (await this.#eachOf(keys, (store, own) => store.loadInstances(own))).flat();
  }

  async readHistory(key: RunAddress, fromSeq: number, limit: number) {
    return this.#rows(key, (store) => store.readHistory(key, fromSeq, limit));
  }

  async readLastTurn(key: RunAddress) {
    return findIn(this.#where(key), (store) => store.readLastTurn(key));
  }

  async listInstances(tenant: string, filter: ListFilter, page: { after?: string; limit: number }) {
    const pages = await askAll(this.#where(filter), (store) => store.listInstances(tenant, filter, page));
    return mergePages(pages, (a, b) => compareText(b.run, a.run), page.limit);
  }

  // ── what an owner looks for ────────────────────────────────────────────────────────────────────────────

  async listRunnable(shards: readonly number[], which: "busy" | "parked", page: { after?: InstanceKey; limit: number }) {
    const pages = await this.#pages(shards, (store, own) => store.listRunnable(own, which, page));
    return mergePages(pages, (a: InstanceRow, b) => compareText(a.run, b.run) || compareText(a.tenant, b.tenant), page.limit);
  }

  async listInbox(shards: readonly number[], { after = 0, limit }: { after?: number; limit: number }) {
    const { count } = this.databases;
    const pages = await this.#pages(shards, async (store, own, { place }) =>
      (await store.listInbox(own, { after: positionIn(after, place, count), limit })).map((message) => ({
        ...message,
        position: positionOf(message.position, place, count),
      })),
    );
    return mergePages(pages, (a, b) => a.position - b.position, limit);
  }

  async readInbox(key: RunAddress, { after = 0, limit }: { after?: number; limit: number }) {
    const { count } = this.databases;
    const pages = await Promise.all(
      this.#where(key).map((database) =>
        database.ask(async (store) =>
          (await store.readInbox(key, { after: positionIn(after, database.place, count), limit })).map((message) => ({
            ...message,
            position: positionOf(message.position, database.place, count),
          })),
        ),
      ),
    );
    return mergePages(pages, (a, b) => a.position - b.position, limit);
  }

  async listTimers(shards: readonly number[], until: number, limit: number) {
    const pages = await this.#pages(shards, (store, own) => store.listTimers(own, until, limit));
    return mergePages(pages, (a: TimerRow, b) => a.due - b.due || compareText(a.run, b.run) || compareText(a.effect, b.effect), limit);
  }

  // ── what is kept of runs beside their history ──────────────────────────────────────────────────────────

  async addDeadLetter(letter: DeadLetter & RunAddress) {
    await this.#homeOf(letter).ask((store) => store.addDeadLetter(letter));
  }

  async listDeadLetters(tenant: string, filter: DeadLetterFilter, page: DeadLetterPage) {
    const pages = await askAll(this.#databases, (store) => store.listDeadLetters(tenant, filter, page));
    return mergePages(pages, (a: DeadLetter, b) => b.at - a.at || compareText(b.run, a.run) || compareText(b.effect, a.effect), page.limit);
  }

  async getDeadLetter(key: EffectAddress) {
    return findIn(this.#where(key), (store) => store.getDeadLetter(key));
  }

  async dropDeadLetters(keys: readonly EffectAddress[]) {
    await this.#eachOf(keys, (store, own) => store.dropDeadLetters(own));
  }

  async saveHeartbeats(heartbeats: readonly (Heartbeat & RunAddress)[]) {
    await this.#eachOf(heartbeats, (store, own) => store.saveHeartbeats(own));
  }

  async readHeartbeats(key: RunAddress) {
    return this.#rows(key, (store) => store.readHeartbeats(key));
  }

  async dropHeartbeats(keys: readonly EffectAddress[]) {
    await this.#eachOf(keys, (store, own) => store.dropHeartbeats(own));
  }

  async expireHeartbeats(before: number) {
    await askThoseThere(this.#databases, (store) => store.expireHeartbeats(before));
  }

  async saveStepOutcome(outcome: StepOutcome & RunAddress) {
    return this.#homeOf(outcome).ask((store) => store.saveStepOutcome(outcome));
  }

  async readStepOutcomes(key: RunAddress) {
    return this.#rows(key, (store) => store.readStepOutcomes(key));
  }

  async expireStepOutcomes(before: number) {
    await askThoseThere(this.#databases, (store) => store.expireStepOutcomes(before));
  }

  // ── strikes, limits, admissions ────────────────────────────────────────────────────────────────────────

  /** None where the first database does not answer: runs of the others are not to wait for it. */
  async listStrikes() {
    try {
      return await this.#first.ask((store) => store.listStrikes());
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || this.#closed) throw error;
      this.#options.log.warn("it is not known which turns never ended before", { error });
      return [];
    }
  }

  async clearStrikes(key: InstanceKey) {
    await this.#first.ask((store) => store.clearStrikes(key));
  }

  async exchangePermits(owner: string, lease: number, asks: readonly PermitAsk[]) {
    return exchangePermits(this.#databases, owner, lease, asks);
  }

  async releasePermits(owners: readonly string[]) {
    await askThoseThere(this.#databases, (store) => store.releasePermits(owners));
  }

  async listPermitOwners() {
    return [...new Set((await askThoseThere(this.#databases, (store) => store.listPermitOwners())).flat())];
  }

  async takeTokens(asks: readonly TokenAsk[]) {
    return takeTokens(this.#databases, asks);
  }

  async admit(asks: readonly AdmissionAsk[]): Promise<never> {
    throw new WovyrError(
      `a limit of concurrent runs (${asks[0]?.name ?? ""}) counts runs, and these lie in several databases: use one, or limit activities`,
      { code: "INVALID_OPTION" },
    );
  }

  async expireLimits() {
    await askThoseThere(this.#databases, (store) => store.expireLimits());
  }

  // ── life ───────────────────────────────────────────────────────────────────────────────────────────────

  async ping() {
    await askAll(this.#databases, (store) => store.ping());
  }

  async close() {
    this.#closed = true;
    for (const relay of this.#relays) relay.close();
    await Promise.all(this.#databases.map(({ store }) => store?.close()));
  }

  // ── where ──────────────────────────────────────────────────────────────────────────────────────────────

  get #first(): Database {
    return this.#databases[0] as Database;
  }

  #of(shard: number): Database {
    return this.#databases[this.#placeOf(shard)] as Database;
  }

  /** Where a run may be. */
  #where({ shard }: { readonly shard?: number | undefined }): readonly Database[] {
    return shard === undefined ? this.#databases : [this.#of(shard)];
  }

  /** Where something of a run is put. */
  #homeOf({ run, shard }: RunAddress): Database {
    if (shard === undefined) throw new Error(`the shard of run ${run} is needed to know its database`);
    return this.#of(shard);
  }

  /** Rows of one run. */
  async #rows<T>(key: RunAddress, ask: (store: Store) => Promise<readonly T[]>): Promise<readonly T[]> {
    const some = async (store: Store) => {
      const rows = await ask(store);
      return rows.length === 0 ? undefined : rows;
    };
    return (await findIn(this.#where(key), some)) ?? [];
  }

  #grouped<T extends { readonly shard: number }>(items: readonly T[]): readonly (readonly [Database, readonly T[]])[] {
    return this.#databases.flatMap((database) => {
      const own = items.filter(({ shard }) => this.#placeOf(shard) === database.place);
      return own.length === 0 ? [] : [[database, own] as const];
    });
  }

  /** Those of each database, and those of unknown shards in all. */
  #eachOf<T extends RunAddress, R>(items: readonly T[], ask: (store: Store, own: readonly T[]) => Promise<R>): Promise<readonly R[]> {
    const asked = this.#databases.flatMap((database) => {
      const own = items.filter(({ shard }) => shard === undefined || this.#placeOf(shard) === database.place);
      return own.length === 0 ? [] : [database.ask((store) => ask(store, own))];
    });
    return Promise.all(asked);
  }

  #pages<T>(
    shards: readonly number[],
    ask: (store: Store, own: readonly number[], database: Database) => Promise<readonly T[]>,
  ): Promise<readonly (readonly T[])[]> {
    const asked = this.#databases.flatMap((database) => {
      const own = shards.filter((shard) => this.#placeOf(shard) === database.place);
      return own.length === 0 ? [] : [database.ask((store) => ask(store, own, database))];
    });
    return Promise.all(asked);
  }
}
