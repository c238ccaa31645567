/**
 * Operations that any node answers: what needs the owner of a run is done here when this node owns it, and asked of the owner when another one does.
 *
 * 1. The id of an instance decides. What is read from the store, and what needs no ownership, is done here.
 * 2. A message, and a start, whose owner does not answer, or not for sure, is made durable without it, under the name under which it was sent: its next
 *    owner finds it, and it counts once.
 * 3. What only the owner can answer (a query, an update, an operation on a history) is asked again for a while, and then refused with OWNER_UNREACHABLE.
 * 4. Waiting for a result, and following a run, go on over changes of its owner: nothing is missed, and nothing told twice. An owner that lets the time pass
 *    in which it was to answer is done without: what is recorded is told.
 * 5. A call that came from another node is answered here or refused with NOT_OWNER; it never goes on to a third one. But for a start whose workflow the node
 *    that was asked does not have: a node that has it is asked in its place, and that one goes on to the owner.
 * 6. Which version is started is decided by the node that is asked. An owner that does not have it is done without.
 * 7. An answer from memory counts only if this node still owns the run, in the same term, when it is there.
 */
import { ApiError, WovyrError } from "@wovyr/sdk";
import {
  type BatchItem,
  type Delivered,
  isClosed,
  isClosingEvent,
  longestWait,
  type Operations,
  type ResultResponse,
  type StartRequest,
  type StartResponse,
  type StreamItem,
  type UpdateResponse,
} from "@wovyr/sdk/internal";
import { placeOfDeadLetter } from "./dead-letter-id.ts";
import type { Departure } from "./departure.ts";
import type { Engine } from "./engine.ts";
import type { Member } from "./members.ts";
import { newMessageName } from "./messages.ts";
import { type LocalOperations, localOperations, maxBatch, type Sayable } from "./operations.ts";
import { isOfNode, isUncertain, notOwner, ownerUnreachable, reasonOf, workflowElsewhere } from "./ownership-errors.ts";
import { PeerCalls } from "./peer-calls.ts";
import type { Place } from "./placement.ts";
import { isClosedResult } from "./results.ts";
import { keyPlace, placeIdOf } from "./start.ts";

/** How long what only the owner can answer is asked again, in milliseconds: longer than a hand-over takes. */
const askPatience = 2_000;
const firstPause = 25;
const longestPause = 1_000;
const eventsPerRead = 500;
/** Nodes that are asked to start what this one does not have. */
const mostDelegates = 3;

type EngineOf = () => Engine;
type Named = { readonly runId?: string; readonly idempotencyKey?: string };
type StartsInFlight = Map<string, Promise<StartResponse>>;

/** What this node offers to clients of its own. */
export function routedOperations(tenant: string, engine: EngineOf, startsInFlight: StartsInFlight): Operations {
  const local: LocalOperations = localOperations(tenant, engine, startsInFlight, () => routed);
  const routed = new Routing(tenant, engine, local).operations;
  return routed;
}

/** What this node offers to others of its group. */
export function forwardedOperations(tenant: string, engine: EngineOf, startsInFlight: StartsInFlight): Operations {
  const local: LocalOperations = localOperations(tenant, engine, startsInFlight, () => routed);
  const routed = new Routing(tenant, engine, local).operations;
  return new Routing(tenant, engine, local, { forwarded: true }).operations;
}

/** What this node offers to others of its group in their place: what they cannot start themselves. */
export function delegatedOperations(tenant: string, engine: EngineOf, startsInFlight: StartsInFlight): Operations {
  const local: LocalOperations = localOperations(tenant, engine, startsInFlight, () => routed);
  const routed = new Routing(tenant, engine, local).operations;
  const { start } = new Routing(tenant, engine, local, { delegated: true }).operations;
  return { ...new Routing(tenant, engine, local, { forwarded: true }).operations, start };
}

class Routing {
  readonly operations: Operations;
  readonly #tenant: string;
  readonly #engine: EngineOf;
  readonly #local: LocalOperations;
  readonly #calls: PeerCalls;
  /** Whether the caller is another node. */
  readonly #forwarded: boolean;
  /** Whether it is another node that did not have the workflow itself. */
  readonly #delegated: boolean;

  constructor(tenant: string, engine: EngineOf, local: LocalOperations, { forwarded = false, delegated = false } = {}) {
    this.#tenant = tenant;
    this.#engine = engine;
    this.#local = local;
    this.#calls = new PeerCalls(tenant);
    this.#forwarded = forwarded;
    this.#delegated = delegated;
    this.operations = this.#operations();
  }

  #operations(): Operations {
    return {
      ...this.#local,
      start: (request) => this.#start(request),
      startBatch: (requests) => this.#startBatch(requests),
      describe: (id, options) => this.#describe(id, options),
      result: (id, options) => this.#result(id, options),
      stream: (id, options) => this.#stream(id, options),

      sendEvent: (id, event, payload, options) => this.#say(id, options, (to, named) => to.sendEvent(id, event, payload, named)),
      wake: (id, options) => this.#say(id, options, (to, named) => to.wake(id, named)),
      cancel: (id, options) => this.#say(id, options, (to, named) => to.cancel(id, named)),
      terminate: (id, options) => this.#say(id, options, (to, named) => to.terminate(id, named)),
      pause: (id, options) => this.#say(id, options, (to, named) => to.pause(id, named)),
      resume: (id, options) => this.#say(id, options, (to, named) => to.resume(id, named)),
      decideCompensation: (id, effect, decision, options) =>
        this.#say(id, options, (to, named) => to.decideCompensation(id, effect, decision, named)),

      query: (id, query, input, options) => this.#ask(id, (owner) => owner.query(id, query, input, options), { fromMemory: true }),
      update: (id, update, input, options) => this.#update(id, update, input, options),
      reset: (id, request) => this.#ask(id, (owner) => owner.reset(id, this.#named(request))),
      delete: (id, options) => this.#ask(id, (owner) => owner.delete(id, options), { once: true }),
      fork: (id, request = {}) => {
        const named = this.#named(request);
        return this.#ask(this.#placeId(named), (owner) => owner.fork(id, named));
      },
      decideDeadLetter: (letter, decision, options) => this.#decide(letter, (owner) => owner.decideDeadLetter(letter, decision, options)),

      startBatchOperation: (request) => {
        const named = this.#named(request);
        return this.#ask(this.#placeId(named), (owner) => owner.startBatchOperation(named));
      },
      decideDeadLetters: (operation, options = {}) => {
        const named = this.#named(options);
        return this.#ask(this.#placeId(named), (owner) => owner.decideDeadLetters(operation, named));
      },
      cancelBatchOperation: (id, options = {}) => {
        const named = this.#named(options);
        return this.#ask(id, (owner) => owner.cancelBatchOperation(id, named));
      },
    };
  }

  // ── where ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Where an instance is; without an id: where one may be begun. */
  #placeOf(engine: Engine, id: string | undefined): Place {
    // What is no text is refused by whoever is asked.
    if (typeof id !== "string") return engine.placement.forNew();
    return engine.placement.of(engine.shardOf(this.#tenant, id));
  }

  /** The id that decides where something new is begun: its own, or (over several databases) that of its key. */
  #placeId({ id, idempotencyKey }: { readonly id?: string | undefined; readonly idempotencyKey?: string | undefined }): string | undefined {
    if (id !== undefined || idempotencyKey === undefined || this.#engine().options.store.databases === undefined) return id;
    return keyPlace(idempotencyKey);
  }

  /** What is nowhere is refused by an engine that reaches no others, as it always was. */
  #isOwn(engine: Engine, { kind }: Place): boolean {
    return kind === "here" || (kind === "nowhere" && isIsolated(engine) && !this.#forwarded);
  }

  /** A name of its own for what may have to be said more than once. Said here, it is said once. */
  #named<T extends { readonly idempotencyKey?: string | undefined }>(request: T): T {
    if (request.idempotencyKey !== undefined || this.#forwarded) return request;
    return { ...request, idempotencyKey: newMessageName(this.#engine()) };
  }

  #leftBy(engine: Engine, id: string | undefined, owner: Member): Departure {
    return id === undefined ? engine.placement.departure(owner) : engine.placement.tenure(engine.shardOf(this.#tenant, id), owner);
  }

  /** Whether it is worth asking again, perhaps another node, after an error. */
  #mayBeElsewhere(engine: Engine, id: string | undefined, asked: Place, error: unknown): error is WovyrError {
    if (!isOfNode(error) || engine.closing || this.#forwarded) return false;
    if (error.code === "NOT_OWNER" && error instanceof ApiError && !error.retryable) return false;
    if (isIsolated(engine) && asked.kind !== "there") return false;
    if (error.code === "CLUSTER_MISCONFIGURED" || error.code === "CLUSTER_SECRET_REFUSED")
      engine.placement.complain(error.message, asked.kind === "there" ? asked.owner : undefined);
    // It owns the shard and says so of the run: that is of another group.
    return asked.kind !== "here" || !same(asked, this.#placeOf(engine, id));
  }

  // ── what only the owner answers ────────────────────────────────────────────────────────────────────────

  /** `once`: not again when the first one may have been done. `fromMemory`: the answer is what the node that gave it had in memory. */
  async #ask<T>(id: string | undefined, call: (owner: Operations) => Promise<T>, { once = false, fromMemory = false } = {}): Promise<T> {
    const engine = this.#engine();
    const { clock } = engine.options;
    const deadline = clock.now() + askPatience;
    for (let tries = 1; ; tries += 1) {
      const place = this.#placeOf(engine, id);
      try {
        if (place.kind !== "here" && this.#forwarded) throw notOwner();
        if (place.kind === "nowhere" && !isIsolated(engine)) throw ownerUnreachable("no node owns it at the moment");
        if (place.kind === "there") return await this.#calls.make(engine, place.owner, this.#leftBy(engine, id, place.owner), call);
        const answer = await call(this.#local);
        if (fromMemory && !same(place, this.#placeOf(engine, id))) throw notOwner();
        return answer;
      } catch (error) {
        if (!this.#mayBeElsewhere(engine, id, place, error)) throw error;
        if (clock.now() >= deadline || (once && isUncertain(error))) throw askedInVain(error, place);
      }
      await this.#afterwards(engine, tries);
    }
  }

  async #decide<T>(letter: string, call: (owner: Operations) => Promise<T>): Promise<T> {
    const run = placeOfDeadLetter(letter)?.run;
    const row =
      run === undefined ? undefined : await this.#engine().options.store.getInstance({ tenant: this.#tenant, run, shard: undefined });
    return row === undefined ? call(this.#local) : this.#ask(row.id, call);
  }

  /** The owner knows more; without it, what is recorded is told. */
  async #describe(id: string, options: Parameters<Operations["describe"]>[1]): ReturnType<Operations["describe"]> {
    const engine = this.#engine();
    const place = this.#placeOf(engine, id);
    if (place.kind === "there" && !this.#forwarded)
      try {
        return await this.#calls.make(engine, place.owner, this.#leftBy(engine, id, place.owner), (owner) => owner.describe(id, options));
      } catch (error) {
        if (!isOfNode(error)) throw error;
      }
    return this.#local.describe(id, options);
  }

  async #update(id: string, update: string, input: unknown, options: Parameters<Operations["update"]>[3] = {}): Promise<UpdateResponse> {
    const engine = this.#engine();
    const { clock } = engine.options;
    const { wait = defaultUpdateWait, signal } = options;
    const named = this.#named(options);
    const began = clock.now();
    for (let tries = 1; ; tries += 1) {
      const place = this.#placeOf(engine, id);
      const left = Math.max(0, wait - (clock.now() - began));
      try {
        if (place.kind !== "here" && this.#forwarded) throw notOwner();
        if (place.kind === "nowhere" && !isIsolated(engine)) throw ownerUnreachable("no node owns it at the moment");
        const ask = (at: Operations, wait: number, signal?: AbortSignal) =>
          at.update(id, update, input, { ...named, wait, ...(signal !== undefined && { signal }) });
        if (place.kind !== "there") return await ask(this.#local, left, signal);
        const { owner } = place;
        const told = await this.#calls.waiting(engine, owner, this.#leftBy(engine, id, owner), left, ask, signal);
        if (told.status !== "Open" || clock.now() - began >= wait) return told;
      } catch (error) {
        signal?.throwIfAborted();
        if (!this.#mayBeElsewhere(engine, id, place, error)) throw error;
        if (clock.now() - began >= Math.max(wait, askPatience)) throw askedInVain(error, place);
      }
      await this.#afterwards(engine, tries, signal);
    }
  }

  // ── what can be made durable without the owner ─────────────────────────────────────────────────────────

  async #say(id: string, options: Named | undefined, say: (to: Sayable, named: Named) => Promise<Delivered>): Promise<Delivered> {
    const engine = this.#engine();
    const named = this.#named(options ?? {});
    for (let tries = 1; ; tries += 1) {
      const place = this.#placeOf(engine, id);
      let silent = false;
      try {
        if (this.#isOwn(engine, place)) return await say(this.#local, named);
        if (this.#forwarded) throw notOwner();
        if (place.kind === "there")
          return await this.#calls.make(engine, place.owner, this.#leftBy(engine, id, place.owner), (owner) => say(owner, named));
      } catch (error) {
        if (!this.#mayBeElsewhere(engine, id, place, error)) throw error;
        silent = isUncertain(error);
      }
      if (tries === 1) await this.#freshly(engine);
      if (tries === 2 || (silent && same(place, this.#placeOf(engine, id)))) return say(this.#withoutOwner(engine), named);
    }
  }

  /** Throws when this node cannot reach the store, or is on its way out. */
  #withoutOwner(engine: Engine): LocalOperations["withoutOwner"] {
    const { unavailable } = engine;
    if (unavailable?.code === "STORE_UNAVAILABLE" || unavailable?.code === "SHUTTING_DOWN") throw unavailable;
    return this.#local.withoutOwner;
  }

  async #start(asked: StartRequest): Promise<StartResponse> {
    const engine = this.#engine();
    const { clock } = engine.options;
    const deadline = clock.now() + (asked.wait ?? 0);
    const version = this.#versionOf(engine, asked);
    if (version === undefined && (this.#forwarded || this.#delegated)) throw workflowElsewhere(asked.workflow, asked.version);
    const others = version === undefined && !isIsolated(engine) ? engine.placement.thatHave(asked.workflow, asked.version) : [];
    if (others.length > 0) return this.#startInstead(engine, others, asked, deadline);
    let request: StartRequest = { ...asked, ...(version !== undefined && { version }) };
    const id = this.#idOfStart(engine, request);
    for (let tries = 1; ; tries += 1) {
      const place = this.#placeOf(engine, id);
      const left = Math.max(0, deadline - clock.now());
      let isVain = tries === 2;
      let silent = false;
      try {
        if (this.#isOwn(engine, place))
          return await this.#withResult(engine, request, deadline, await this.#local.start({ ...request, wait: left }));
        if (this.#forwarded) throw notOwner();
        if (place.kind === "there") {
          request = this.#named(request);
          const { owner } = place;
          const { signal, ...told } = request;
          const leaving = this.#leftBy(engine, id, owner);
          const start = (at: Operations, wait = 0) => at.start({ ...told, wait });
          const started =
            left === 0
              ? await this.#calls.make(engine, owner, leaving, (at) => start(at), signal)
              : await this.#calls.waiting(engine, owner, leaving, left, start, signal);
          return await this.#withResult(engine, request, deadline, started);
        }
      } catch (error) {
        if (place.kind === "there" && hasCode(error, "WORKFLOW_ELSEWHERE")) isVain = true;
        // Without a key nobody could tell whether the first one was done.
        else if (request.idempotencyKey === undefined || !this.#mayBeElsewhere(engine, id, place, error)) throw error;
        silent = isUncertain(error);
      }
      if (!isVain) await this.#freshly(engine);
      if (isVain || (silent && same(place, this.#placeOf(engine, id)))) {
        const started = await this.#withoutOwner(engine).start({ ...this.#named(request), wait: 0 });
        return this.#withResult(engine, request, deadline, started);
      }
    }
  }

  /** The id that decides where a start is done. */
  #idOfStart({ options }: Engine, request: StartRequest): string | undefined {
    const { registry, limits, store } = options;
    return placeIdOf(registry.ifStarted(request.workflow, request.version), request, {
      limit: limits.execution.payload,
      keyed: store.databases !== undefined,
    });
  }

  /** The version that a start means; undefined when this node does not have it. */
  #versionOf({ options }: Engine, { workflow, version }: StartRequest): string | undefined {
    return options.registry.ifStarted(workflow, version)?.version;
  }

  /** Asks nodes that have the workflow, which this one has not, one after another. */
  async #startInstead(engine: Engine, others: readonly Member[], asked: StartRequest, deadline: number): Promise<StartResponse> {
    const { clock } = engine.options;
    const { signal, ...request } = this.#named(asked);
    const { unavailable } = engine;
    if (unavailable?.code === "SHUTTING_DOWN") throw unavailable;
    let failure: WovyrError | undefined;
    for (const member of others.slice(0, mostDelegates))
      try {
        const wait = Math.min(Math.max(0, deadline - clock.now()), longestWait);
        const started = await this.#calls.instead(engine, member, (delegate) => delegate.start({ ...request, wait }), signal);
        return await this.#withResult(engine, asked, deadline, started);
      } catch (error) {
        if (!isOfNode(error)) throw error;
        if (error.code === "CLUSTER_MISCONFIGURED" || error.code === "CLUSTER_SECRET_REFUSED")
          engine.placement.complain(error.message, member);
        failure = askedInVain(error, { kind: "there", owner: member });
      }
    throw failure ?? workflowElsewhere(asked.workflow, asked.version);
  }

  /** Waits on for a result that has not come yet, though there is time left. */
  async #withResult(engine: Engine, { wait = 0, signal }: StartRequest, deadline: number, started: StartResponse): Promise<StartResponse> {
    const left = deadline - engine.options.clock.now();
    if (wait === 0 || left <= 0 || started.result !== undefined || signal?.aborted === true || this.#forwarded) return started;
    const result = await this.#result(started.id, { runId: started.runId, wait: left, ...(signal !== undefined && { signal }) });
    return { ...started, status: result.status, ...(isClosedResult(result) && { result }) };
  }

  async #startBatch(requests: readonly StartRequest[]): Promise<readonly BatchItem[]> {
    const engine = this.#engine();
    const groups = new Map<string, Group>();
    for (const [at, asked] of requests.entries()) {
      const version = this.#versionOf(engine, asked);
      const request = version === undefined ? asked : { ...asked, version };
      const place = this.#forwarded ? undefined : this.#placeOf(engine, this.#idOfStart(engine, request));
      const owner = place?.kind === "there" ? place.owner : undefined;
      const name = owner === undefined ? "" : `${owner.node} ${request.workflow}`;
      const group = groups.get(name) ?? { owner, items: [] };
      group.items.push({ at, request: owner === undefined ? request : this.#named(request) });
      groups.set(name, group);
    }
    if (this.#forwarded || groups.size === 0 || requests.length > maxBatch) return this.#guardedBatch(requests);
    const outcomes = new Array<BatchItem>(requests.length);
    await Promise.all(
      [...groups.values()].map(async ({ owner, items }) => {
        const found = await this.#startGroup(
          engine,
          owner,
          items.map(({ request }) => request),
        );
        for (const [index, { at }] of items.entries()) outcomes[at] = found[index] as BatchItem;
      }),
    );
    return outcomes;
  }

  async #startGroup(engine: Engine, owner: Member | undefined, requests: readonly StartRequest[]): Promise<readonly BatchItem[]> {
    const alone = (request: StartRequest): Promise<BatchItem> =>
      this.#start(request).then(
        (value) => ({ ok: true, value }),
        (error: Error) => ({ ok: false, error }),
      );
    if (owner === undefined) return Promise.all(requests.map(alone));
    let items: readonly BatchItem[];
    try {
      items = await this.#calls.make(engine, owner, engine.placement.departure(owner), (at) => at.startBatch(requests));
    } catch (error) {
      if (!isOfNode(error)) throw error;
      return Promise.all(requests.map(alone));
    }
    return Promise.all(items.map((item, index) => (item.ok || !isOfNode(item.error) ? item : alone(requests[index] as StartRequest))));
  }

  /** Starts that came from another node: those of other owners are refused one by one. */
  #guardedBatch(requests: readonly StartRequest[]): Promise<readonly BatchItem[]> {
    if (!this.#forwarded) return this.#local.startBatch(requests);
    return Promise.all(
      requests.map((request) =>
        this.#start(request).then(
          (value): BatchItem => ({ ok: true, value }),
          (error: Error): BatchItem => ({ ok: false, error }),
        ),
      ),
    );
  }

  // ── waiting and following ──────────────────────────────────────────────────────────────────────────────

  async #result(id: string, options: Parameters<Operations["result"]>[1] = {}): Promise<ResultResponse> {
    const engine = this.#engine();
    const { clock } = engine.options;
    const { wait = 0, signal, ...which } = options;
    const deadline = clock.now() + wait;
    const recorded = () => this.#local.result(id, which);
    if (wait <= 0) return recorded();
    for (let tries = 1; ; tries += 1) {
      const place = this.#placeOf(engine, id);
      const left = deadline - clock.now();
      let result: ResultResponse;
      try {
        if (place.kind === "here") result = await this.#local.result(id, { ...options, wait: left });
        else if (this.#forwarded) throw notOwner();
        // It may become this node's meanwhile.
        else if (place.kind === "nowhere") result = await this.#local.result(id, { ...options, wait: Math.min(left, longestPause) });
        else {
          const { owner } = place;
          const ask = (at: Operations, wait: number, signal: AbortSignal) => at.result(id, { ...which, wait, signal });
          result = await this.#calls.waiting(engine, owner, this.#leftBy(engine, id, owner), left, ask, signal);
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (!this.#mayBeElsewhere(engine, id, place, error)) throw error;
        result = await recorded();
      }
      if (isClosed(result.status) || clock.now() >= deadline) return result;
      await this.#afterwards(engine, tries, signal, deadline);
    }
  }

  async *#stream(id: string, options: Parameters<Operations["stream"]>[1] = {}): AsyncGenerator<StreamItem> {
    const engine = this.#engine();
    const { signal } = options;
    let { runId, after } = options;
    for (let fruitless = 1; ; fruitless += 1) {
      const place = this.#placeOf(engine, id);
      try {
        for await (const item of this.#source(engine, id, place, { ...options, ...which(runId, after) })) {
          fruitless = 0;
          runId = item.runId;
          after = { runId, seq: item.event.seq };
          yield item;
          if (isClosingEvent(item.event.type)) return;
        }
        if (place.kind !== "nowhere") return;
      } catch (error) {
        if (signal?.aborted === true) return;
        if (!this.#mayBeElsewhere(engine, id, place, error)) throw error;
      }
      if (signal?.aborted === true) return;
      for await (const item of this.#recorded(id, which(runId, after))) {
        runId = item.runId;
        after = { runId, seq: item.event.seq };
        yield item;
        if (isClosingEvent(item.event.type)) return;
      }
      await this.#afterwards(engine, fruitless, signal).catch(() => {});
    }
  }

  /** Ends when the run has, and throws when the node from which it comes owns it no more. */
  async *#source(
    engine: Engine,
    id: string,
    place: Place,
    options: NonNullable<Parameters<Operations["stream"]>[1]>,
  ): AsyncGenerator<StreamItem> {
    if (place.kind === "nowhere") {
      if (this.#forwarded) throw notOwner();
      return;
    }
    if (place.kind === "here") {
      yield* this.#local.stream(id, options);
      return;
    }
    if (this.#forwarded) throw notOwner();
    const { owner } = place;
    yield* this.#calls.follow(engine, owner, this.#leftBy(engine, id, owner), id, options);
  }

  /** What the store has of a run after a place. */
  async *#recorded(id: string, { runId, after }: Follow): AsyncGenerator<StreamItem> {
    for (let fromSeq = (after?.seq ?? 0) + 1; ; ) {
      const page = await this.#local.history(id, { ...(runId !== undefined && { runId }), fromSeq, limit: eventsPerRead });
      for (const event of page.items) yield { runId: page.runId, event };
      if (page.nextSeq === undefined) return;
      fromSeq = page.nextSeq;
    }
  }

  // ── pauses ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Looks who owns what now. A store that does not answer is no reason to give up. */
  async #freshly(engine: Engine): Promise<void> {
    await engine.placement.refresh().catch(() => {});
  }

  /** Waits a while, longer from time to time, and looks who owns what then. */
  async #afterwards(engine: Engine, tries: number, signal?: AbortSignal, deadline = Number.POSITIVE_INFINITY): Promise<void> {
    if (tries > 1) {
      const { clock } = engine.options;
      const pause = Math.min(longestPause, firstPause * 2 ** Math.min(tries - 2, 10));
      let cancel = () => {};
      let stop = () => {};
      await new Promise<void>((resolve) => {
        stop = resolve;
        cancel = clock.wakeAt(Math.min(deadline, clock.now() + pause), resolve);
        signal?.addEventListener("abort", stop);
        if (signal?.aborted === true) resolve();
      });
      cancel();
      signal?.removeEventListener("abort", stop);
      signal?.throwIfAborted();
    }
    await this.#freshly(engine);
  }
}

/** Whether an engine reaches no others. */
const isIsolated = ({ options }: Engine): boolean => options.peers === undefined;

/** Milliseconds that an update is waited for unless something else is said. */
const defaultUpdateWait = 30_000;

type Group = { readonly owner: Member | undefined; readonly items: { readonly at: number; readonly request: StartRequest }[] };
type Follow = { readonly runId?: string; readonly after?: { readonly runId: string; readonly seq: number } };

function which(runId: string | undefined, after: Follow["after"]): Follow {
  return { ...(runId !== undefined && { runId }), ...(after !== undefined && { after }) };
}

const same = (a: Place, b: Place): boolean =>
  a.kind === b.kind &&
  (a.kind !== "here" || a.epoch === (b as typeof a).epoch) &&
  (a.kind !== "there" || a.owner.node === (b as typeof a).owner.node);

const hasCode = (error: unknown, code: string): boolean => error instanceof WovyrError && error.code === code;

function askedInVain(error: WovyrError, place: Place): WovyrError {
  if (error.code === "CLUSTER_MISCONFIGURED" || error.code === "OWNER_UNREACHABLE") return error;
  if (error.code === "CLUSTER_SECRET_REFUSED")
    return new ApiError(`The node that owns the run refuses this one: ${error.message}`, { code: "CLUSTER_MISCONFIGURED", cause: error });
  if (place.kind !== "there") return ownerUnreachable("it does not answer", error);
  const { node, url = "an unknown address" } = place.owner;
  return ownerUnreachable(`node ${node} at ${url} does not answer: ${reasonOf(error)}`, error);
}
