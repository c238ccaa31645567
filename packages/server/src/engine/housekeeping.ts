/**
 * Removes what nobody asks for any more: now, and every ten minutes.
 *
 * 1. Start keys, and outcomes of steps and tasks whose runs have ended, are kept for a day, words of attempts for a week, publications and closed runs as long
 *    as is said.
 * 2. Each node looks after the closed runs of its shards; what belongs to no shard is left to the one that owns the first.
 */
import type { Engine } from "./engine.ts";
import { Retention } from "./removal.ts";
import { startKeyLife } from "./start.ts";

/** Words of attempts that nobody came back for. */
const heartbeatLife = 7 * 24 * 3_600_000;
/** Of runs that have ended: longer than anything that still belongs to one of their attempts. */
const stepOutcomeLife = 24 * 3_600_000;
/** How long the outcome of a task is known when it is said again, and a worker when it is silent. */
const taskMemory = 24 * 3_600_000;
const interval = 600_000;

export class Housekeeping {
  readonly #engine: Engine;
  readonly #retention: Retention;
  #cancel = () => {};

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#retention = new Retention(engine, engine.options.retention ?? new Map());
  }

  start(): void {
    this.stop();
    const { ownership, options } = this.#engine;
    const { clock } = options;
    void this.#retention.sweep();
    this.#cancel = clock.wakeAt(clock.now() + interval, () => this.start());
    if (ownership.owns(ownership.firstShard)) this.#expire();
  }

  stop(): void {
    this.#cancel();
  }

  #expire(): void {
    const { clock, store, log, publicationRetention } = this.#engine.options;
    const now = clock.now();
    const gone: Readonly<Record<string, Promise<void>>> = {
      "old start keys": store.expireStartKeys(now - startKeyLife),
      "old outcomes of steps": store.expireStepOutcomes(now - stepOutcomeLife),
      "old outcomes of tasks": store.tasks.expire(taskMemory),
      "old heartbeats": store.expireHeartbeats(now - heartbeatLife),
      "old publications": store.expirePublications(now - publicationRetention),
      "what is left of old limits": store.expireLimits(),
    };
    for (const [what, done] of Object.entries(gone)) done.catch((error) => log.warn(`${what} could not be removed`, { error }));
  }
}
