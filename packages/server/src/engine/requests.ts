/**
 * What applications asked for in transactions of their own: runs that were created, events for runs, publications.
 *
 * 1. A request is a row until it is done: the run that was created is in memory, the event in history, the publication and the runs that it triggers
 *    durable. What a crash leaves is done again, and nothing of it twice: each has a name that its run, or the table of publications, knows from then on.
 * 2. Nobody can tell this node when such a transaction commits, so it looks while it owns shards, from the oldest on: soon again after it found something,
 *    and less often when there was nothing for a while.
 * 3. What one transaction asked for a run, or published under one name and key, is done in that order.
 * 4. What can never be done (the run has ended, the payload fits no schema) goes, and is logged as an error: whoever asked is not there any more. All else
 *    is tried again.
 * 5. At most `most` are under way at once, and none is begun while the engine has more work than it takes.
 */
import { ApiError, type ErrorCode, WovyrError } from "@wovyr/sdk";
import { decodePayload, errorCodes, type Incoming } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import { type AppRequest, type AppRequests, publicationMessage, StoreUnavailableError } from "./ports/store.ts";
import { Publishing } from "./publishing.ts";
import { routedOperations } from "./routed-operations.ts";
import { Tenancy } from "./tenancy.ts";

/** How long a request waits at most until it is looked for, in milliseconds, while the node keeps up: after others, and after `quietTime` without any. */
export const requestPause = 250;
const quietPause = 1_000;
const quietTime = 30_000;
/** What failed and may be done later is tried again after this. */
const retryPause = 2_000;
const pageRequests = 200;
const mostUnderWay = 5_000;

type EventReceived = Extract<Incoming, { type: "EventReceived" }>;

export class Requests {
  readonly #engine: Engine;
  readonly #publishing = new Map<string, Publishing>();
  /** By name: under way (infinity), or when it is tried again. */
  readonly #begun = new Map<string, number>();
  #done: AppRequest[] = [];
  /** The last publication under way of each name and key. */
  readonly #topics = new Map<string, Promise<void>>();
  #cancel = () => {};
  /** When the last request was found. */
  #lastFound = Number.NEGATIVE_INFINITY;
  /** Ends with the ownership; what was begun before is void. */
  #term = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  start(): void {
    this.stop();
    const { requests } = this.#engine.options.store;
    if (requests !== undefined && !this.#engine.closing) void this.#look(requests, this.#term);
  }

  stop(): void {
    this.#term += 1;
    this.#cancel();
    this.#begun.clear();
    this.#topics.clear();
    this.#done = [];
  }

  async #look(source: AppRequests, term: number): Promise<void> {
    const { clock, log } = this.#engine.options;
    try {
      await this.#sweep(source, term);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError))
        log.error("what applications asked for could not be read; it is tried again", { error });
    }
    if (term !== this.#term) return;
    const pause = clock.now() - this.#lastFound < quietTime ? requestPause : quietPause;
    this.#cancel = clock.wakeAt(clock.now() + pause, () => void this.#look(source, term));
  }

  async #sweep(source: AppRequests, term: number): Promise<void> {
    const { ownership, options } = this.#engine;
    await this.#drop(source, term);
    for (let after = 0; ; ) {
      if (!ownership.holds || this.#engine.admission.refusal !== undefined) return;
      const page = await source.list(ownership.shards, { after, limit: pageRequests });
      if (page.length > 0) this.#lastFound = options.clock.now();
      for (const request of page) {
        if (term !== this.#term || this.#begun.size >= mostUnderWay) return;
        if ((this.#begun.get(nameOf(request)) ?? 0) > options.clock.now()) continue;
        this.#begun.set(nameOf(request), Number.POSITIVE_INFINITY);
        await this.#begin(request, term).catch((error: unknown) => this.#failed(request, term, error));
      }
      const last = page[page.length - 1];
      if (last === undefined || page.length < pageRequests) return;
      after = last.position;
    }
  }

  async #drop(source: AppRequests, term: number): Promise<void> {
    const done = this.#done;
    if (done.length === 0) return;
    await source.drop(done);
    if (term !== this.#term) return;
    this.#done = this.#done.slice(done.length);
    for (const request of done) this.#begun.delete(nameOf(request));
  }

  /** Resolves when it is on its way, in its place among others. */
  async #begin(request: AppRequest, term: number): Promise<void> {
    switch (request.kind) {
      case "start":
        return this.#enter(request, term);
      case "send":
        return this.#send(request, term);
      case "sendTo":
        return this.#sendTo(request, term);
      case "publish":
        return this.#publish(request, term);
    }
  }

  /** Lets a run that was created begin. Its start is in its inbox until it is applied, so that there is no need to wait for that. */
  #enter(request: AppRequest, term: number): void {
    const { revival, table, options } = this.#engine;
    const entered = async () => {
      await revival.begin(request);
      if (table.get(request.run) !== undefined) return;
      const row = await options.store.getInstance(request);
      if (row !== undefined && row.closedAt === undefined)
        throw new ApiError(`Run "${request.run}" could not be loaded; try again.`, { code: "STORE_UNAVAILABLE" });
    };
    entered().then(
      () => this.#finished(request, term),
      (error: unknown) => this.#failed(request, term, error),
    );
  }

  async #send(request: AppRequest, term: number, run = request.run): Promise<void> {
    const fact = (await this.#engine.rows.decodeFact(request.fact)) as Incoming;
    if (term !== this.#term) return;
    const accepted = () => this.#finished(request, term);
    const refused = (error: Error) => this.#failed(request, term, error);
    this.#engine.deliver({ ...request, run }, { fact, receipt: { accepted, refused } });
  }

  async #sendTo(request: AppRequest, term: number): Promise<void> {
    const { tenant, run: id, shard } = request;
    const row = await this.#engine.options.store.findInstance(tenant, id, shard);
    if (row === undefined) throw new ApiError(`There is no instance "${id}".`, { code: "INSTANCE_NOT_FOUND" });
    return this.#send(request, term, row.run);
  }

  async #publish(request: AppRequest, term: number): Promise<void> {
    const { name, key, payload } = (await this.#engine.rows.decodeFact(request.fact)) as EventReceived;
    const topic = JSON.stringify([request.tenant, name, key]);
    const idempotencyKey = request.message.slice(publicationMessage("").length);
    const publish = async () => {
      if (term !== this.#term) throw new ApiError("This node no longer owns its shards; try again.", { code: "NOT_OWNER" });
      await this.#publisher(request.tenant).publish(name, decodePayload(payload), { idempotencyKey, ...(key !== undefined && { key }) });
    };
    // One that failed for now takes those behind it along, so that none comes before it.
    const published = (this.#topics.get(topic) ?? Promise.resolve()).then(publish).then(
      () => this.#finished(request, term),
      (error: unknown) => {
        this.#failed(request, term, error);
        if (mayBeDoneLater(error)) throw error;
      },
    );
    this.#topics.set(topic, published);
    const ended = () => {
      if (this.#topics.get(topic) === published) this.#topics.delete(topic);
    };
    published.then(ended, ended);
  }

  #publisher(tenant: string): Publishing {
    const known = this.#publishing.get(tenant);
    if (known !== undefined) return known;
    const engine = () => this.#engine;
    const anywhere = routedOperations(tenant, engine, new Map());
    const made = new Publishing(new Tenancy(tenant, engine), () => anywhere);
    this.#publishing.set(tenant, made);
    return made;
  }

  #finished(request: AppRequest, term: number): void {
    if (term === this.#term) this.#done.push(request);
  }

  #failed(request: AppRequest, term: number, error: unknown): void {
    if (term !== this.#term) return;
    const { clock, log } = this.#engine.options;
    const { tenant, run, kind, message } = request;
    if (mayBeDoneLater(error)) {
      this.#begun.set(nameOf(request), clock.now() + retryPause);
      return;
    }
    log.error("what an application asked for in a transaction of its own came to nothing", { tenant, run, kind, request: message, error });
    this.#done.push(request);
  }
}

const nameOf = ({ tenant, run, message }: AppRequest): string => JSON.stringify([tenant, run, message]);

/** What is no error of Wovyr's own is no fault of the request. */
function mayBeDoneLater(error: unknown): boolean {
  if (error instanceof ApiError) return error.retryable;
  return !(error instanceof WovyrError) || error.code === "INTERNAL" || errorCodes[error.code satisfies ErrorCode].retryable;
}
