/**
 * Workers that ask for tasks, and the tasks that they get.
 *
 * 1. Polls of workers that can do the same are claimed for together, one claim of theirs under way at a time; none gets more than it asked for.
 * 2. A poll is looked for when it comes, when this node hears that a task of one of its queues waits, and, where other nodes write tasks as well, once in a
 *    while. What is heard while a claim is under way makes one more.
 * 3. Of several queues each gets its share of what is asked for, from another one on each time; what one has none of goes to the others.
 * 4. What was claimed for a poll that is over is handed back at once. The polls of a worker that lost a task by its silence are over.
 */
import {
  type ActivityTask,
  ApiError,
  checkLabels,
  checkName,
  decodePayload,
  mostQueues,
  type TaskPoll,
  WovyrError,
} from "@wovyr/sdk/internal";
import { attemptKey } from "./attempt.ts";
import type { Engine } from "./engine.ts";
import type { ClaimedTask } from "./ports/tasks.ts";
import { leaseOf } from "./task-leases.ts";
import type { AboutTask } from "./task-writes.ts";

/** Tasks that one poll may ask for; it gets what one claim finds. */
export const mostTasks = 1_000;
/** Tasks that one claim asks for, for all its polls. */
const mostPlaces = 256;
/** Polls that wait on this node at once. */
const mostPolls = 10_000;
/** How long a poll that waits may not hear of what another node wrote, in milliseconds; jittered by a half. */
const lookInterval = 1_000;
/** Queues of which it is remembered whose turn is next. */
const mostTurns = 1_000;
const tokenBytes = 24;

type Poll = {
  readonly worker: string;
  readonly max: number;
  /** Under which it may get tasks of the claim that is under way. */
  readonly tokens: Set<string>;
  readonly end: (tasks: readonly ActivityTask[]) => void;
  readonly fail: (error: unknown) => void;
  over: boolean;
};

/** Polls of workers that can do the same. */
type Kind = {
  readonly queues: readonly string[];
  readonly activities: readonly string[] | undefined;
  readonly labels: readonly string[];
  readonly lease: number;
  readonly polls: Set<Poll>;
  /** The claims that are under way; what is asked for meanwhile is looked for before they end. */
  work: Promise<void> | undefined;
  again: boolean;
  /** The queue that comes first next. */
  first: number;
  cancelLook: () => void;
};

export class TaskQueues {
  readonly #engine: Engine;
  readonly #kinds = new Map<string, Kind>();
  /** The tenant that was served last, by queue. */
  readonly #lastTenants = new Map<string, string>();
  /** Queues of which it was heard since the last look. */
  #heard = new Set<string>();
  #polls = 0;
  #closed = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Polls that wait. */
  get waiting(): number {
    return this.#polls;
  }

  async poll({ wait = 0, signal, ...asked }: TaskPoll): Promise<readonly ActivityTask[]> {
    const { queues, activities, labels = [], worker, max = 1 } = checked(asked);
    const lease = leaseOf(asked.lease);
    if (this.#closed) throw closing();
    if (signal?.aborted) return [];
    if (this.#polls >= mostPolls) throw new ApiError(`${mostPolls} polls are waiting already`, { code: "OVERLOADED", retryAfter: 1_000 });
    const kind = this.#kindOf({ queues, activities, labels, lease });
    const { clock } = this.#engine.options;
    this.#polls += 1;
    return new Promise((resolve, reject) => {
      let cancelWait = () => {};
      const over = () => {
        if (poll.over) return;
        poll.over = true;
        this.#polls -= 1;
        cancelWait();
        signal?.removeEventListener("abort", giveUp);
        kind.polls.delete(poll);
        this.#dropIfIdle(kind);
      };
      const end = (tasks: readonly ActivityTask[]) => {
        over();
        resolve(tasks);
      };
      const fail = (error: unknown) => {
        over();
        reject(error);
      };
      const giveUp = () => end([]);
      const poll: Poll = { worker, max, tokens: new Set(), end, fail, over: false };
      kind.polls.add(poll);
      signal?.addEventListener("abort", giveUp, { once: true });
      void this.#claim(kind).then(() => {
        if (poll.over) return;
        if (wait <= 0) giveUp();
        else cancelWait = clock.wakeAt(clock.now() + wait, giveUp);
      });
    });
  }

  /** A task of the queue waits. */
  arrived(queue: string): void {
    this.#engine.unpolledQueues.taskWaits();
    if (this.#polls === 0) return;
    if (this.#heard.size === 0) this.#engine.options.loop.immediate(() => this.#look());
    this.#heard.add(queue);
  }

  /** A worker that is silent is given nothing: its polls may wait long after its process. */
  silent(worker: string): void {
    for (const kind of [...this.#kinds.values()]) for (const poll of [...kind.polls]) if (poll.worker === worker) poll.end([]);
  }

  close(): void {
    this.#closed = true;
    for (const kind of [...this.#kinds.values()]) for (const poll of [...kind.polls]) poll.end([]);
  }

  #look(): void {
    const heard = this.#heard;
    this.#heard = new Set();
    for (const kind of [...this.#kinds.values()]) if (kind.queues.some((queue) => heard.has(queue))) void this.#claim(kind);
  }

  #kindOf(asked: Pick<Kind, "queues" | "activities" | "labels" | "lease">): Kind {
    const name = kindName(asked);
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const kind: Kind = { ...asked, polls: new Set(), work: undefined, again: false, first: 0, cancelLook: () => {} };
    this.#kinds.set(name, kind);
    return kind;
  }

  #dropIfIdle(kind: Kind): void {
    if (kind.polls.size > 0 || kind.work !== undefined) return;
    kind.cancelLook();
    const name = kindName(kind);
    if (this.#kinds.get(name) === kind) this.#kinds.delete(name);
  }

  /** Claims for the polls of a kind; resolves when all that wait now have been looked for, and rejects never. */
  #claim(kind: Kind): Promise<void> {
    kind.again = true;
    kind.work ??= this.#claimAll(kind);
    return kind.work;
  }

  /** As long as there is anything to claim. */
  async #claimAll(kind: Kind): Promise<void> {
    kind.cancelLook();
    while (kind.again && kind.polls.size > 0) {
      kind.again = false;
      const polls = [...kind.polls];
      try {
        await this.#give(polls, await this.#claimFor(kind, polls), kind.lease);
      } catch (error) {
        for (const poll of polls) poll.fail(error);
      }
    }
    kind.work = undefined;
    this.#dropIfIdle(kind);
    if (kind.polls.size > 0) this.#lookLater(kind);
  }

  /** Other nodes do not say what they write. */
  #lookLater(kind: Kind): void {
    const { clock, random, looksForTasks } = this.#engine.options;
    if (looksForTasks !== true) return;
    kind.cancelLook = clock.wakeAt(clock.now() + Math.round(lookInterval * (0.5 + random.fraction())), () => void this.#claim(kind));
  }

  async #claimFor(kind: Kind, polls: readonly Poll[]): Promise<ClaimedTask[]> {
    const { activities, labels, lease, queues } = kind;
    const places = this.#placesOf(polls);
    const claimed: ClaimedTask[] = [];
    const first = kind.first;
    kind.first = (first + 1) % queues.length;
    let open = queues.map((_, index) => queues[(first + index) % queues.length] as string);
    while (open.length > 0 && claimed.length < places.length) {
      const full: string[] = [];
      for (const [index, queue] of open.entries()) {
        const share = Math.ceil((places.length - claimed.length) / (open.length - index));
        if (share === 0) break;
        const asked = places.slice(claimed.length, claimed.length + share);
        const afterTenant = this.#lastTenants.get(queue) ?? "";
        const claim = { queue, activities, labels, places: asked, lease, afterTenant };
        const tasks = await this.#engine.options.store.tasks.claim(claim).catch((error: unknown) => {
          if (claimed.length === 0) throw error;
          return [];
        });
        claimed.push(...tasks);
        this.#remember(queue, tasks);
        if (tasks.length === asked.length) full.push(queue);
      }
      open = full;
    }
    // There may be more, for those that got nothing.
    if (claimed.length === places.length) kind.again = true;
    return claimed;
  }

  #remember(queue: string, tasks: readonly ClaimedTask[]): void {
    const last = tasks[tasks.length - 1];
    if (last === undefined) return;
    this.#lastTenants.delete(queue);
    this.#lastTenants.set(queue, last.tenant);
    const [oldest] = this.#lastTenants.keys();
    if (this.#lastTenants.size > mostTurns && oldest !== undefined) this.#lastTenants.delete(oldest);
  }

  /** A place of each poll after the other, so that few tasks are spread over many workers. */
  #placesOf(polls: readonly Poll[]): { readonly token: string; readonly worker: string; readonly poll: Poll }[] {
    const places: { readonly token: string; readonly worker: string; readonly poll: Poll }[] = [];
    for (let round = 0; places.length < mostPlaces; round += 1) {
      const before = places.length;
      for (const poll of polls)
        if (round < poll.max && places.length < mostPlaces) places.push({ token: this.#newToken(), worker: poll.worker, poll });
      if (places.length === before) break;
    }
    for (const { token, poll } of places) poll.tokens.add(token);
    return places;
  }

  #newToken(): string {
    let token = "";
    for (const byte of this.#engine.options.random.bytes(tokenBytes)) token += byte.toString(16).padStart(2, "0");
    return token;
  }

  async #give(polls: readonly Poll[], claimed: readonly ClaimedTask[], lease: number): Promise<void> {
    const byToken = new Map(claimed.map((task) => [task.token, task]));
    const orphans: string[] = [];
    for (const { about } of claimed) {
      const { timeout = {} } = JSON.parse(about) as AboutTask;
      this.#engine.taskSweep.within(Math.min(lease, timeout.startToClose ?? lease, timeout.heartbeat ?? lease));
    }
    for (const poll of polls) {
      const tasks = [...poll.tokens].flatMap((token) => byToken.get(token) ?? []);
      poll.tokens.clear();
      if (tasks.length === 0) continue;
      const opened = await this.#opened(tasks);
      if (poll.over) orphans.push(...opened.map(({ token }) => token));
      else if (opened.length > 0) poll.end(opened);
    }
    if (orphans.length > 0)
      await this.#engine.taskLeases
        .release(orphans)
        .catch((error) => this.#warn("tasks that nobody waits for any more could not be handed back; their leases end", error));
  }

  /** As workers get them. One whose values cannot be read fails instead. */
  async #opened(tasks: readonly ClaimedTask[]): Promise<readonly ActivityTask[]> {
    const opened = await Promise.all(
      tasks.map(async (task) => {
        try {
          return await this.#viewOf(task);
        } catch (error) {
          const unsaid = (cause: unknown) => this.#warn("a task whose values cannot be read could not fail; its lease ends", cause);
          await this.#engine.taskLeases.fail(task.token, error).catch(unsaid);
          return undefined;
        }
      }),
    );
    return opened.filter((task) => task !== undefined);
  }

  #warn(message: string, error: unknown): void {
    this.#engine.options.log.warn(message, { error });
  }

  async #viewOf({ token, run, effect, queue, name, attempt, input, about, details }: ClaimedTask): Promise<ActivityTask> {
    const { rows } = this.#engine;
    const { instanceId, workflow, semantics, timeout } = JSON.parse(about) as AboutTask;
    return {
      token,
      queue,
      activity: name,
      input: decodePayload(await rows.open(input)),
      attempt,
      idempotencyKey: attemptKey(run, effect),
      instanceId,
      runId: run,
      workflow,
      ...(details !== undefined && { lastHeartbeat: decodePayload(await rows.open(details)) }),
      ...(semantics !== undefined && { semantics }),
      ...(timeout !== undefined && { timeout }),
    };
  }
}

const kindName = ({ queues, activities, labels, lease }: Pick<Kind, "queues" | "activities" | "labels" | "lease">): string =>
  JSON.stringify([queues, activities ?? null, labels, lease]);

const closing = () => new ApiError("The orchestrator is shutting down; try again.", { code: "SHUTTING_DOWN", retryAfter: 1_000 });

/** Throws INVALID_NAME or INVALID_OPTION. */
function checked(poll: TaskPoll): TaskPoll {
  const { queues, worker, activities, labels, max } = poll;
  if (queues.length === 0 || queues.length > mostQueues)
    throw new WovyrError(`a poll names 1 to ${mostQueues} queues, not ${queues.length}`, { code: "INVALID_OPTION" });
  for (const queue of queues) checkName(queue, "the name of a queue");
  checkName(worker, "the id of a worker");
  for (const activity of activities ?? []) checkName(activity, "the name of an activity");
  if (labels !== undefined) checkLabels(labels, "the labels of a worker");
  if (max !== undefined && !(Number.isSafeInteger(max) && max >= 1 && max <= mostTasks))
    throw new WovyrError(`max must be a whole number from 1 to ${mostTasks}`, { code: "INVALID_OPTION" });
  const sorted = (names: readonly string[]) => [...new Set(names)].sort();
  return {
    ...poll,
    queues: sorted(queues),
    ...(activities !== undefined && { activities: sorted(activities) }),
    ...(labels !== undefined && { labels: sorted(labels) }),
  };
}
