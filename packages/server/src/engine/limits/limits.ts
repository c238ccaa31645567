/**
 * Holds attempts back until their limits let them through.
 *
 * 1. An attempt passes its limits one after the other, and holds the permits of those that it has passed until it ends, or is not to begin any more.
 * 2. Limits hold over all nodes: the store keeps them (ports/limits.ts). A permit of which it is not certain that this node still holds it is none: what runs
 *    with it is stopped, and made again.
 * 3. One that waits takes no place. Its time goes on, and its order among others is that of the scheduling strategy.
 * 4. A node whose own lease has run out asks for nothing: what waits here may wait elsewhere by now.
 * 5. What the store did with a call whose answer was lost counts as done where it takes, and as not done where it gives.
 */
import { WovyrError } from "@wovyr/sdk";
import type { AttemptWait } from "@wovyr/sdk/internal";
import { type Attempt, attemptKey } from "../attempt.ts";
import type { Ownership } from "../ownership.ts";
import type { Clock } from "../ports/clock.ts";
import type { EngineLog } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import type { SchedulingStrategy } from "../scheduling/strategy.ts";
import { WaitingAttempts } from "../scheduling/waiting.ts";
import { isLimited, type Limit, limitsOfAttempt, type PermitLimit, type TenantLimits } from "./limits-of.ts";
import type { Pass } from "./pass.ts";
import { PermitLane } from "./permit-lane.ts";
import { Rounds } from "./rounds.ts";
import { TokenLane } from "./token-lane.ts";

export type LimitsOptions = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: EngineLog;
  readonly group: string;
  readonly node: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly scheduling: SchedulingStrategy;
  readonly tenantLimits: TenantLimits | undefined;
  readonly ownership: Pick<Ownership, "holds">;
  /** Which nodes are known to be dead: what they hold need not wait for the end of their leases. */
  readonly deadOwners: (owners: readonly string[]) => readonly string[];
  /** How many more attempts could begin now. */
  readonly room: () => number;
  /** It has passed all its limits. */
  readonly admitted: (attempt: Attempt) => void;
  /** It is not to begin, or is to end, because of a limit or of what is wrong with it. */
  readonly refused: (attempt: Attempt, error: WovyrError) => void;
  /** Its permit is gone: it is to be made again. */
  readonly lapsed: (attempt: Attempt) => void;
};

/** How long permits are kept that nothing uses: what comes next may. */
const keepSpare = 100;
/** How often a node asks again that waits for others, or for its lease. */
const sharedPause = 200;
/** How often a node with all permits looks whether another one wants some, or wants some of its uses ended. */
const lookPause = 1_000;

export class Limits {
  readonly #options: LimitsOptions;
  readonly #passes = new Map<string, Pass>();
  readonly #permits: Rounds<PermitLane>;
  readonly #tokens: Rounds<TokenLane>;
  #cancelLapse = () => {};
  #lapseAt = Number.POSITIVE_INFINITY;
  #waiting = 0;
  /** Whether this node may hold permits. */
  #hasAsked = false;
  /** Whether tokens were not asked for because there was no place. */
  #lacksRoom = false;

  constructor(options: LimitsOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#permits = new Rounds({ clock, log, ask: (lanes, isVoid) => this.#askPermits(lanes, isVoid) });
    this.#tokens = new Rounds({ clock, log, ask: (lanes, isVoid) => this.#askTokens(lanes, isVoid) });
  }

  /** Attempts that wait for limits. */
  get waiting(): number {
    return this.#waiting;
  }

  /** When the next attempt may get through; milliseconds since the epoch. */
  get nextDue(): number | undefined {
    if (this.#waiting === 0) return undefined;
    const [permits, tokens] = [this.#permits.nextDue, this.#tokens.nextDue];
    return permits === undefined || tokens === undefined ? (permits ?? tokens) : Math.min(permits, tokens);
  }

  applyTo(attempt: Attempt): boolean {
    return isLimited(attempt, this.#options.tenantLimits);
  }

  /** What an attempt waits for; undefined when it waits for no limit. */
  waitOf(key: string): AttemptWait | undefined {
    const pass = this.#passes.get(key);
    const limit = pass?.limits[pass.passed];
    return limit && { kind: limit.kind, of: limit.of, ...(limit.key !== undefined && { key: limit.key }) };
  }

  /** Whether an attempt waits here, or holds what it has passed. */
  knows(key: string): boolean {
    return this.#passes.has(key);
  }

  /** Lets an attempt through its limits: `admitted` is told, at once or later. */
  admit(attempt: Attempt): void {
    const key = attemptKey(attempt.run, attempt.effect);
    // What it passed before, and was held back after, it passes anew.
    this.ended(key);
    let limits: readonly Limit[];
    try {
      limits = limitsOfAttempt(attempt, this.#options.group, this.#options.tenantLimits);
    } catch (error) {
      this.#options.refused(attempt, error as WovyrError);
      return;
    }
    const pass: Pass = { attempt, key, limits, passed: 0, holds: [], asked: false };
    this.#passes.set(key, pass);
    this.#enter(pass);
  }

  /** An attempt has ended, or is not to begin any more. */
  ended(key: string): void {
    const pass = this.#passes.get(key);
    if (pass === undefined) return;
    this.#passes.delete(key);
    const limit = pass.limits[pass.passed];
    if (limit !== undefined) {
      this.#waiting -= 1;
      if (limit.kind === "rateLimit") this.#tokenLane(limit).remove(pass);
      else this.#leavePermits(this.#permitLane(limit), pass);
    }
    for (const lane of pass.holds) this.#leavePermits(lane, pass);
  }

  /** There is a place again. */
  roomMade(): void {
    if (!this.#lacksRoom) return;
    this.#lacksRoom = false;
    for (const lane of this.#tokens.lanes())
      if (lane.waiting.size > 0 && lane.askAt === Number.POSITIVE_INFINITY) this.#tokens.due(lane, this.#now);
  }

  /** Forgets everything: what this node holds is free when its lease ends. */
  forget(): void {
    this.#passes.clear();
    this.#permits.clear();
    this.#tokens.clear();
    this.#cancelLapse();
    this.#lapseAt = Number.POSITIVE_INFINITY;
    this.#waiting = 0;
    this.#lacksRoom = false;
  }

  /** Gives up what this node holds, when nothing of it is used any more. */
  async release(): Promise<void> {
    const { store, node } = this.#options;
    this.forget();
    if (this.#hasAsked) await store.releasePermits([node]);
  }

  get #now(): number {
    return this.#options.clock.now();
  }

  // ── the way through ────────────────────────────────────────────────────────────────────────────────────

  #enter(pass: Pass): void {
    const limit = pass.limits[pass.passed];
    if (limit === undefined) {
      this.#options.admitted(pass.attempt);
      return;
    }
    this.#waiting += 1;
    if (limit.kind === "concurrency") {
      const lane = this.#permitLane(limit);
      lane.add(pass);
      if (limit.onLimit === "cancelInProgress") this.#supersede(lane);
      this.#servePermits(lane);
      if (lane.waiting.has(pass)) this.#permits.due(lane, this.#now);
      return;
    }
    const lane = this.#tokenLane(limit);
    lane.add(pass);
    // Those before it wait for a time that is known.
    if (lane.askAt === Number.POSITIVE_INFINITY) this.#tokens.due(lane, this.#now);
  }

  #passed(pass: Pass): void {
    this.#waiting -= 1;
    pass.passed += 1;
    this.#enter(pass);
  }

  // ── permits ────────────────────────────────────────────────────────────────────────────────────────────

  #permitLane(limit: PermitLimit): PermitLane {
    const order = () => new WaitingAttempts<Pass>({ ...this.#options, strategy: this.#options.scheduling }, ({ attempt }) => attempt);
    return this.#permits.lane(JSON.stringify([limit.tenant, limit.name]), () => new PermitLane(limit, order()));
  }

  #servePermits(lane: PermitLane): void {
    // One that is let through may end at once, and so make room for the next.
    if (lane.isServing) return;
    lane.isServing = true;
    for (let pass = lane.next(this.#now); pass !== undefined; pass = lane.next(this.#now)) {
      pass.holds.push(lane);
      this.#passed(pass);
    }
    lane.isServing = false;
  }

  #leavePermits(lane: PermitLane, pass: Pass): void {
    lane.remove(pass);
    this.#servePermits(lane);
    if (lane.shared) this.#permits.due(lane, this.#now);
    else if (lane.hasSpare || lane.isEmpty) this.#permits.due(lane, this.#now + keepSpare);
  }

  /** Of those that would take the place of others, only as many wait as there are places. */
  #supersede(lane: PermitLane): void {
    const [oldest] = lane.waiting;
    if (oldest !== undefined && lane.waiting.size > lane.limit.capacity) this.#cancel(oldest, lane, "newer ones take its place");
  }

  /** Gives up what dead nodes hold, before their leases end; once, before the first ask. */
  async #bury(): Promise<void> {
    const { store, node, deadOwners } = this.#options;
    const dead = deadOwners((await store.listPermitOwners()).filter((owner) => owner !== node));
    if (dead.length > 0) await store.releasePermits(dead);
  }

  async #askPermits(lanes: readonly PermitLane[], isVoid: () => boolean): Promise<void> {
    const { store, node, lease, ownership } = this.#options;
    if (!this.#hasAsked && ownership.holds) await this.#bury();
    if (isVoid()) return;
    if (!ownership.holds) {
      for (const lane of lanes) this.#permits.due(lane, this.#now + sharedPause);
      return;
    }
    this.#hasAsked = true;
    const askedAt = this.#now;
    this.#lapse();
    const asks = lanes.map((lane) => lane.ask());
    const grants = await store.exchangePermits(node, lease, asks);
    if (isVoid()) return;
    for (const [index, lane] of lanes.entries()) {
      const grant = grants[index];
      if (grant === undefined) {
        this.#permits.due(lane, this.#now + lookPause);
        continue;
      }
      lane.granted(grant, askedAt + lease);
      for (const pass of [...lane.inUse.keys()].slice(0, grant.evict)) this.#cancel(pass, lane, "newer ones take its place");
      this.#servePermits(lane);
      if (lane.limit.onLimit === "cancelNewest")
        for (const pass of [...lane.waiting]) if (pass.asked) this.#cancel(pass, lane, "it is not to wait");
      this.#permits.due(lane, this.#nextAsk(lane));
    }
    this.#watchLapse();
  }

  /** When a lane is asked about again that nothing happens to. */
  #nextAsk(lane: PermitLane): number {
    const now = this.#now;
    if (lane.waiting.size > 0) return now + (lane.hasAll && lane.limit.onLimit === "queue" ? lookPause : sharedPause);
    if (lane.hasSpare) return now + (lane.shared ? 0 : keepSpare);
    if (lane.isEmpty) return lane.isIdle ? Number.POSITIVE_INFINITY : now;
    return now + (lane.limit.onLimit === "cancelInProgress" ? Math.min(lookPause, this.#options.lease / 3) : this.#options.lease / 3);
  }

  #cancel(pass: Pass, { limit }: PermitLane, why: string): void {
    const { of, capacity, key } = limit;
    const what = `${of === pass.attempt.activity.name ? "" : `"${of}" `}${key === undefined ? "" : `with key ${JSON.stringify(key)} `}`;
    this.#options.refused(
      pass.attempt,
      new WovyrError(
        `activity "${pass.attempt.activity.name}" was cancelled by its concurrency limit: at most ${capacity} ${what}run at once, and ${why}.`,
        { code: "CONCURRENCY_LIMIT" },
      ),
    );
  }

  /** Permits of which it is not certain any more that they are this node's. */
  #lapse(): void {
    const now = this.#now;
    for (const lane of this.#permits.lanes()) {
      if (lane.inUse.size === 0 || lane.validUntil > now) continue;
      const { of, tenant } = lane.limit;
      this.#options.log.warn("permits could not be renewed in time: what runs with them is stopped, and made again", { limit: of, tenant });
      for (const pass of lane.lapse()) this.#options.lapsed(pass.attempt);
    }
  }

  #watchLapse(): void {
    let next = Number.POSITIVE_INFINITY;
    for (const lane of this.#permits.lanes()) if (lane.inUse.size > 0) next = Math.min(next, lane.validUntil);
    if (next === this.#lapseAt) return;
    this.#cancelLapse();
    this.#lapseAt = next;
    if (next === Number.POSITIVE_INFINITY) return;
    this.#cancelLapse = this.#options.clock.wakeAt(next, () => {
      this.#lapseAt = Number.POSITIVE_INFINITY;
      this.#lapse();
      this.#watchLapse();
    });
  }

  // ── tokens ─────────────────────────────────────────────────────────────────────────────────────────────

  #tokenLane(limit: Extract<Limit, { kind: "rateLimit" }>): TokenLane {
    const order = () => new WaitingAttempts<Pass>({ ...this.#options, strategy: this.#options.scheduling }, ({ attempt }) => attempt);
    return this.#tokens.lane(JSON.stringify([limit.tenant, limit.name]), () => new TokenLane(limit, order()));
  }

  async #askTokens(lanes: readonly TokenLane[], isVoid: () => boolean): Promise<void> {
    if (!this.#options.ownership.holds) {
      for (const lane of lanes) this.#tokens.due(lane, this.#now + sharedPause);
      return;
    }
    let room = this.#options.room();
    const asked = lanes.flatMap((lane) => {
      const ask = lane.ask(room);
      room -= ask.wanted;
      if (ask.wanted < lane.waiting.size) this.#lacksRoom = true;
      return ask.wanted === 0 ? [] : [{ lane, ask }];
    });
    if (asked.length === 0) return;
    const grants = await this.#options.store.takeTokens(asked.map(({ ask }) => ask));
    if (isVoid()) return;
    for (const [index, { lane }] of asked.entries()) {
      const { tokens, wait } = grants[index] ?? { tokens: 0, wait: 0 };
      for (let taken = 0; taken < tokens; taken += 1) {
        const pass = lane.next();
        if (pass !== undefined) this.#passed(pass);
      }
      if (lane.waiting.size === 0) continue;
      if (wait === 0 && this.#options.room() === 0) this.#lacksRoom = true;
      else this.#tokens.due(lane, this.#now + wait);
    }
  }
}
