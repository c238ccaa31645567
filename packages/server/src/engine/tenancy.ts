/** The engine as one tenant sees it: nothing of another one is found through here. */
import { ApiError } from "@wovyr/sdk";
import { checkName, type Turn } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { InstanceRow } from "./ports/store.ts";
import { statusOf } from "./views.ts";

const turnsPerRead = 500;

export class Tenancy {
  readonly tenant: string;
  /** Throws when there is none yet. */
  readonly engine: () => Engine;

  constructor(tenant: string, engine: () => Engine) {
    this.tenant = tenant;
    this.engine = engine;
  }

  /** The engine, when it may change anything now. */
  acting(): Engine {
    const engine = this.engine();
    const { unavailable } = engine;
    if (unavailable !== undefined) throw unavailable;
    return engine;
  }

  /** The engine, when it may bring runs into memory: also while it closes, as long as it has any. */
  reading(): Engine {
    const engine = this.engine();
    const { unableToLoad } = engine;
    if (unableToLoad !== undefined) throw unableToLoad;
    return engine;
  }

  /** A run of an instance: the newest, or the given one. Throws INSTANCE_NOT_FOUND. */
  async row(engine: Engine, id: string, runId: string | undefined): Promise<InstanceRow> {
    const { store } = engine.options;
    checkName(id, "the id of an instance");
    if (runId !== undefined) checkName(runId, "runId");
    const { tenant } = this;
    const shard = engine.shardOf(tenant, id);
    const row = runId === undefined ? await store.findInstance(tenant, id, shard) : await store.getInstance({ tenant, run: runId, shard });
    if (row !== undefined && row.id === id) return row;
    const newest = runId === undefined ? undefined : await store.findInstance(tenant, id, shard);
    throw new ApiError(
      newest === undefined
        ? `There is no instance "${id}".`
        : `Instance "${id}" has no run "${runId}": it was removed, or never was there. The newest run of this id is "${newest.run}" (${statusOf(newest)}).`,
      { code: "INSTANCE_NOT_FOUND" },
    );
  }

  /** The whole history of a run. */
  async turns(engine: Engine, row: InstanceRow): Promise<Turn[]> {
    const turns: Turn[] = [];
    for (let from = 1; ; ) {
      const rows = await engine.options.store.readHistory(row, from, turnsPerRead);
      turns.push(...(await engine.rows.decodeAll(rows)));
      const last = rows[rows.length - 1];
      if (last === undefined || rows.length < turnsPerRead) return turns;
      from = last.seq + last.count;
    }
  }
}
