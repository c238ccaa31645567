/**
 * The store over any driver of the Postgres dialect.
 *
 * 1. Nothing is cached: every answer is the database's.
 * 2. A text that cannot be stored is found nowhere and refused on the way in, whatever the driver would make of it.
 */
import { WovyrError } from "@wovyr/sdk";
import type { AdmissionAsk } from "../../engine/ports/admissions.ts";
import type { StorePart } from "../../engine/ports/databases.ts";
import type { PermitAsk, TokenAsk } from "../../engine/ports/limits.ts";
import type {
  AppRequests,
  Beat,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterPage,
  EffectKey,
  Flush,
  Heartbeat,
  Hints,
  InboxMessage,
  InstanceKey,
  ListFilter,
  LoadedInstance,
  Publication,
  RunImport,
  StepOutcome,
  StepTransactions,
  Store,
  StrikeSink,
} from "../../engine/ports/store.ts";
import { StoreUnavailableError } from "../../engine/ports/store.ts";
import type { TaskStore } from "../../engine/ports/tasks.ts";
import { isStorable, messageProblem } from "../storable.ts";
import { admit, dropStartKey } from "./admissions.ts";
import { deleteRuns, listClosedBefore } from "./closed-runs.ts";
import { commit } from "./commit.ts";
import { addDeadLetter, dropDeadLetters, getDeadLetter, listDeadLetters } from "./dead-letters.ts";
import { DriverError, type SqlDriver, type SqlQuery, type SqlValue } from "./driver.ts";
import { classify, unavailable } from "./failure-class.ts";
import { startSlot } from "./flush-parameters.ts";
import { dropHeartbeats, expireHeartbeats, readHeartbeats, saveHeartbeats } from "./heartbeats.ts";
import { runLists } from "./key-lists.ts";
import { exchangePermits, expireLimits, listPermitOwners, releasePermits, takeTokens } from "./limits.ts";
import { listInstances } from "./list-instances.ts";
import { beat, leave } from "./membership.ts";
import { sqlPart } from "./part.ts";
import { expirePublications, publish } from "./publications.ts";
import { sqlRequests } from "./requests.ts";
import { readInstance, readMessage, readTurn } from "./rows.ts";
import { importRun } from "./run-import.ts";
import { expireStepOutcomes, readStepOutcomes, saveStepOutcome } from "./step-outcomes.ts";
import { sqlTasks } from "./tasks.ts";
import { arrayLiteral, textList } from "./text-list.ts";

const tries = 6;
const closePatience = 500;
const groupMismatch = "WV001";

type ClosableStepTransactions = StepTransactions & { close(): Promise<void> };
type ClosableHints = Hints & { close(): Promise<void> };

export class SqlStore implements Store {
  readonly kind: string;
  readonly strikes: StrikeSink;
  readonly transactions?: ClosableStepTransactions;
  readonly requests: AppRequests | undefined;
  readonly hints: ClosableHints | undefined;
  readonly tasks: TaskStore;
  readonly part?: StorePart;
  readonly #driver: SqlDriver;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * Others reach the database as well where there are transactions: then applications may ask for something in theirs. With a label it may be one of several.
   */
  constructor(
    kind: string,
    driver: SqlDriver,
    strikes: StrikeSink,
    { transactions, hints, label }: { transactions?: ClosableStepTransactions; hints?: ClosableHints | undefined; label?: string } = {},
  ) {
    this.kind = kind;
    this.hints = hints;
    if (transactions !== undefined) this.transactions = transactions;
    this.strikes = strikes;
    this.#driver = driver;
    this.tasks = sqlTasks((lane, text, params) => this.#query(lane, text, params));
    if (label !== undefined) this.part = sqlPart(label, (lane, text, params) => this.#query(lane, text, params));
    this.requests = transactions && sqlRequests((lane, text, params) => this.#query(lane, text, params));
  }

  async beat(said: Beat) {
    return beat(this.#query, said);
  }

  async leave(group: string, node: string) {
    await leave(this.#query, group, node);
  }

  async commit(flush: Flush) {
    this.#checkOpen();
    return this.#track(commit(this.#driver, flush));
  }

  async post(messages: readonly InboxMessage[]): Promise<void> {
    if (messages.length === 0) return;
    for (const message of messages) {
      const problem = messageProblem(message);
      if (problem !== undefined) throw problem;
    }
    await this.#query("write", "select wovyr.post_1($1, $2, $3, $4, $5, $6)::text", [
      messages.length,
      textList(messages.map(({ tenant }) => tenant)),
      textList(messages.map(({ run }) => run)),
      arrayLiteral(messages.map(({ shard }) => shard)),
      textList(messages.map(({ message }) => message)),
      textList(messages.map(({ fact }) => fact)),
    ]);
  }

  async drop(messages: readonly (InstanceKey & { readonly message: string })[]): Promise<void> {
    const known = messages.filter(({ tenant, run, message }) => isStorable(tenant) && isStorable(run) && isStorable(message));
    if (known.length === 0) return;
    await this.#query("write", "select wovyr.drop_1($1, $2, $3, $4)::text", [
      known.length,
      textList(known.map(({ tenant }) => tenant)),
      textList(known.map(({ run }) => run)),
      textList(known.map(({ message }) => message)),
    ]);
  }

  async publish(publication: Publication) {
    return publish(this.#query, publication);
  }

  async expirePublications(before: number) {
    await expirePublications(this.#query, before);
  }

  async importRun(run: RunImport) {
    return importRun(this.#query, run);
  }

  async deleteRuns(keys: readonly InstanceKey[]) {
    return deleteRuns(this.#query, keys);
  }

  async listClosedBefore(before: number, page: { after?: InstanceKey; limit: number }) {
    return listClosedBefore(this.#query, before, page);
  }

  async addDeadLetter(letter: DeadLetter) {
    await addDeadLetter(this.#query, letter);
  }

  async listDeadLetters(tenant: string, filter: DeadLetterFilter, page: DeadLetterPage) {
    return listDeadLetters(this.#query, tenant, filter, page);
  }

  async getDeadLetter(key: EffectKey) {
    return getDeadLetter(this.#query, key);
  }

  async dropDeadLetters(keys: readonly EffectKey[]) {
    await dropDeadLetters(this.#query, keys);
  }

  async saveHeartbeats(heartbeats: readonly Heartbeat[]) {
    await saveHeartbeats(this.#query, heartbeats);
  }

  async readHeartbeats(key: InstanceKey) {
    return readHeartbeats(this.#query, key);
  }

  async dropHeartbeats(keys: readonly EffectKey[]) {
    await dropHeartbeats(this.#query, keys);
  }

  async expireHeartbeats(before: number) {
    await expireHeartbeats(this.#query, before);
  }

  async saveStepOutcome(outcome: StepOutcome) {
    return saveStepOutcome(this.#query, outcome);
  }

  async readStepOutcomes(key: InstanceKey) {
    return readStepOutcomes(this.#query, key);
  }

  async expireStepOutcomes(before: number) {
    await expireStepOutcomes(this.#query, before);
  }

  async findInstance(tenant: string, id: string) {
    const [row] = await this.#find("select wovyr.find_1($1, $2)", [tenant, id]);
    return row?.[0] == null ? undefined : readInstance(String(row[0]));
  }

  async getInstance({ tenant, run }: InstanceKey) {
    const [row] = await this.#find("select wovyr.get_1($1, $2)", [tenant, run]);
    return row?.[0] == null ? undefined : readInstance(String(row[0]));
  }

  async findStartKey(tenant: string, workflow: string, key: string) {
    if (!isStorable(workflow) || !isStorable(key)) return undefined;
    const [row] = await this.#find("select * from wovyr.start_key_1($1, $2)", [tenant, startSlot(workflow, key)]);
    return row && { run: String(row[0]), digest: String(row[1]) };
  }

  async loadInstances(keys: readonly InstanceKey[]): Promise<readonly LoadedInstance[]> {
    const lists = runLists(keys);
    if (lists === undefined) return [];
    const rows = await this.#query("read", "select * from wovyr.load_1($1, $2)", lists);
    const loaded: {
      row: LoadedInstance["row"];
      turns: LoadedInstance["turns"][number][];
    }[] = [];
    for (const [instance, ...turn] of rows) {
      if (instance !== null) loaded.push({ row: readInstance(String(instance)), turns: [] });
      if (turn[0] !== null) loaded.at(-1)?.turns.push(readTurn(turn));
    }
    return loaded;
  }

  async readHistory({ tenant, run }: InstanceKey, fromSeq: number, limit: number) {
    const rows = await this.#find("select * from wovyr.history_1($1, $2, $3, $4)", [tenant, run, fromSeq, limit]);
    return rows.map(readTurn);
  }

  async readLastTurn({ tenant, run }: InstanceKey) {
    const [row] = await this.#find("select * from wovyr.last_turn_1($1, $2)", [tenant, run]);
    return row && readTurn(row);
  }

  async listInstances(tenant: string, filter: ListFilter, page: { after?: string; limit: number }) {
    const { text, params } = listInstances(tenant, filter, page);
    const rows = await this.#find(text, params);
    return rows.map(([instance]) => readInstance(String(instance)));
  }

  async listRunnable(shards: readonly number[], which: "busy" | "parked", page: { after?: InstanceKey; limit: number }) {
    const rows = await this.#query("read", "select * from wovyr.runnable_1($1, $2, $3, $4, $5)", [
      arrayLiteral([...new Set(shards)]),
      which === "parked",
      page.after?.run ?? "",
      page.after?.tenant ?? "",
      page.limit,
    ]);
    return rows.map(([instance]) => readInstance(String(instance)));
  }

  async listInbox(shards: readonly number[], page: { after?: number; limit: number }) {
    const rows = await this.#query("read", "select * from wovyr.inbox_1($1, $2, $3)", [
      arrayLiteral([...new Set(shards)]),
      page.after ?? 0,
      page.limit,
    ]);
    return rows.map(readMessage);
  }

  async readInbox({ tenant, run }: InstanceKey, page: { after?: number; limit: number }) {
    const rows = await this.#find("select * from wovyr.inbox_of_1($1, $2, $3, $4)", [tenant, run, page.after ?? 0, page.limit]);
    return rows.map(readMessage);
  }

  async listTimers(shards: readonly number[], until: number, limit: number) {
    const rows = await this.#query("read", "select * from wovyr.timers_1($1, $2, $3)", [arrayLiteral([...new Set(shards)]), until, limit]);
    return rows.map(([tenant, run, shard, effect, due]) => ({
      tenant: String(tenant),
      run: String(run),
      shard: Number(shard),
      effect: String(effect),
      due: Number(due),
    }));
  }

  async listStrikes() {
    const rows = await this.#query("read", "select tenant, run, tail, workflow, count from wovyr.strikes order by tenant, run, tail", []);
    return rows.map(([tenant, run, tail, workflow, count]) => ({
      tenant: String(tenant),
      run: String(run),
      tail: Number(tail),
      workflow: String(workflow),
      count: Number(count),
    }));
  }

  async clearStrikes({ tenant, run }: InstanceKey): Promise<void> {
    await this.#query("write", "delete from wovyr.strikes where tenant = $1 and run = $2", [tenant, run]);
  }

  async exchangePermits(owner: string, lease: number, asks: readonly PermitAsk[]) {
    return exchangePermits(this.#query, owner, lease, asks);
  }

  async releasePermits(owners: readonly string[]) {
    await releasePermits(this.#query, owners);
  }

  async listPermitOwners() {
    return listPermitOwners(this.#query);
  }

  async takeTokens(asks: readonly TokenAsk[]) {
    return takeTokens(this.#query, asks);
  }

  async admit(asks: readonly AdmissionAsk[]) {
    return admit(this.#query, asks);
  }

  async dropStartKey(tenant: string, workflow: string, key: string, run: string) {
    await dropStartKey(this.#query, tenant, workflow, key, run);
  }

  async expireLimits() {
    await expireLimits(this.#query);
  }

  async expireStartKeys(before: number): Promise<void> {
    await this.#query("write", "delete from wovyr.start_keys where at < $1::bigint", [before]);
  }

  async ping(): Promise<void> {
    await this.#query("read", "select 1", []);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([this.#runningEnded(), this.transactions?.close(), this.hints?.close()]);
    await this.#driver.close();
  }

  /** Resolves when no statement is under way, or after a while: a database that does not answer is not waited for. */
  async #runningEnded(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closePatience);
    });
    await Promise.race([Promise.allSettled(this.#running), late]);
    clearTimeout(timer);
  }

  /** A query by names that come from outside: what cannot be stored is not there. */
  async #find(text: string, params: readonly SqlValue[]): Promise<readonly (readonly SqlValue[])[]> {
    if (params.some((value) => typeof value === "string" && !isStorable(value))) return [];
    return this.#query("read", text, params);
  }

  readonly #query: SqlQuery = async (lane, text, params, deadline) => {
    for (let attempt = 1; ; attempt += 1) {
      this.#checkOpen();
      try {
        return await this.#track(this.#driver.query(lane, text, params, deadline));
      } catch (error) {
        const kind = classify(error);
        if (error instanceof DriverError && error.code === groupMismatch) throw new WovyrError(error.message, { code: "INVALID_OPTION" });
        if (kind === "refused") throw error;
        if (kind === "unavailable" || attempt === tries) throw unavailable(error);
      }
    }
  };

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new StoreUnavailableError("the store is closed");
  }
}
