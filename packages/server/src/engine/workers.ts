/**
 * Workers as they tell of themselves: the whole installation sees them, whichever node they speak to.
 *
 * 1. What a worker told holds for a while; one that has been silent for longer, and did not say that it stops, is Lost.
 * 2. Workers that are Stopped or Lost are forgotten after a day.
 * 3. A worker that is Draining or Stopped takes no tasks any more.
 */
import { checkLabels, checkName, isName, type Page, type WorkerInfo, type WorkerReport } from "@wovyr/sdk/internal";
import { cursorAfter, runOfCursor } from "./cursor.ts";
import type { Engine } from "./engine.ts";
import { Gathered } from "./gathered.ts";
import type { KnownWorker, WorkerRow } from "./ports/tasks.ts";
import { leaseOf } from "./task-leases.ts";

const batch = 500;
const defaultPage = 50;

/** JSON of a row: what the worker told, and since when it is known. */
type About = Omit<WorkerReport, "tokens" | "lease">;

export class Workers {
  readonly #engine: Engine;
  readonly #saves: Gathered<WorkerRow, undefined>;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#saves = new Gathered(async (rows) => {
      await engine.options.store.tasks.saveWorkers(rows);
      return rows.map(() => undefined);
    }, batch);
  }

  /** A worker tells of itself and of the tasks that it has; resolves with those that it does not have any more. */
  async heartbeat(id: string, { tokens = [], lease: asked, ...about }: WorkerReport): Promise<{ readonly lost: readonly string[] }> {
    checkName(id, "the id of a worker");
    if (about.labels !== undefined) checkLabels(about.labels, "the labels of a worker");
    const lease = leaseOf(asked);
    const [lost] = await Promise.all([this.#engine.taskLeases.keepAlive(tokens, lease), this.told(id, about, lease)]);
    return { lost };
  }

  async told(id: string, about: About, within: number): Promise<void> {
    await this.#saves.add({ id, about: JSON.stringify(about), takes: queuesOf(about), within });
  }

  async list({ cursor, limit = defaultPage }: { readonly cursor?: string; readonly limit?: number } = {}): Promise<Page<WorkerInfo>> {
    const after = cursor === undefined ? undefined : runOfCursor(cursor);
    const workers = await this.#engine.options.store.tasks.listWorkers({ ...(after !== undefined && { after }), limit });
    const last = workers[workers.length - 1];
    return { items: workers.map(infoOf), ...(last !== undefined && workers.length === limit && { nextCursor: cursorAfter(last.id) }) };
  }
}

/** From which queues it takes tasks. */
function queuesOf({ state, queues }: About): readonly string[] {
  return state === "Draining" || state === "Stopped" ? [] : [...new Set(queues)].filter(isName);
}

function infoOf({ id, about, seenAt, isOverdue }: KnownWorker): WorkerInfo {
  const { state, queues, labels = [], running = 0, ...rest } = JSON.parse(about) as About;
  const isLost = isOverdue && state !== "Stopped";
  return { id, ...rest, state: isLost ? "Lost" : state, queues, labels, running: isLost ? 0 : running, lastSeenAt: new Date(seenAt) };
}
