import type { EffectKey, InstanceKey } from "../../engine/ports/store.ts";
import { compareText } from "../text-order.ts";

/** Rows of which each belongs to one effect of one run. */
export class EffectRows<Row extends EffectKey> {
  readonly #runs = new Map<string, Map<string, Row>>();

  get({ tenant, run, effect }: EffectKey): Row | undefined {
    return this.#runs.get(nameOf({ tenant, run }))?.get(effect);
  }

  set(row: Row): void {
    const name = nameOf(row);
    const rows = this.#runs.get(name);
    if (rows === undefined) this.#runs.set(name, new Map([[row.effect, row]]));
    else rows.set(row.effect, row);
  }

  remove(key: EffectKey): void {
    const name = nameOf(key);
    const rows = this.#runs.get(name);
    if (rows?.delete(key.effect) && rows.size === 0) this.#runs.delete(name);
  }

  removeRun(key: InstanceKey): void {
    this.#runs.delete(nameOf(key));
  }

  /** Those of a run, by effect. */
  ofRun(key: InstanceKey): Row[] {
    return [...(this.#runs.get(nameOf(key))?.values() ?? [])].sort((a, b) => compareText(a.effect, b.effect));
  }

  *all(): Generator<Row> {
    for (const rows of this.#runs.values()) yield* rows.values();
  }
}

function nameOf({ tenant, run }: InstanceKey): string {
  return `${tenant}\u001f${run}`;
}
