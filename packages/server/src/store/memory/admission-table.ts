/** Runs that wait for their turn, and those that have been admitted, by limit. */
import { type AdmissionAsk, admissionFacts, admissionMessage, supersededMessage, type Told } from "../../engine/ports/admissions.ts";
import type { InboxMessage, InstanceKey } from "../../engine/ports/store.ts";

type Entry = { readonly run: string; readonly shard: number; admitted: boolean; superseded: boolean };

export type AdmissionSurroundings = {
  isOpen(key: InstanceKey): boolean;
  deliver(message: InboxMessage): void;
};

export class AdmissionTable {
  readonly #limits = new Map<string, Map<string, Entry>>();

  admit(asks: readonly AdmissionAsk[], around: AdmissionSurroundings): Told[] {
    const told: Told[] = [];
    for (const { tenant, name, run } of asks) {
      if (run === undefined) continue;
      const entries = this.#entries(tenant, name);
      const known = entries.get(run.run);
      if (known === undefined) entries.set(run.run, { ...run, admitted: false, superseded: false });
      else if (known.admitted) told.push({ tenant, ...run });
    }
    const seen = new Set<string>();
    for (const ask of asks) {
      const key = JSON.stringify([ask.tenant, ask.name]);
      if (seen.has(key)) continue;
      seen.add(key);
      this.#decide(ask, around, told);
    }
    return told;
  }

  #entries(tenant: string, name: string): Map<string, Entry> {
    const key = JSON.stringify([tenant, name]);
    const known = this.#limits.get(key) ?? new Map<string, Entry>();
    this.#limits.set(key, known);
    return known;
  }

  #decide({ tenant, name, capacity, onLimit }: AdmissionAsk, around: AdmissionSurroundings, told: Told[]): void {
    const entries = this.#entries(tenant, name);
    const tell = ({ run, shard }: Entry, message: string, fact: string) => {
      around.deliver({ tenant, run, shard, message, fact });
      told.push({ tenant, run, shard });
    };
    for (const [run] of entries) if (!around.isOpen({ tenant, run })) entries.delete(run);
    let left = capacity;
    for (const { admitted } of entries.values()) if (admitted) left -= 1;
    let waiting = 0;
    for (const [run, entry] of entries) {
      if (entry.admitted) continue;
      if (left > 0) {
        left -= 1;
        entry.admitted = true;
        tell(entry, admissionMessage, admissionFacts.admitted);
      } else if (onLimit === "cancelNewest") {
        entries.delete(run);
        tell(entry, admissionMessage, admissionFacts.refused);
      } else waiting += 1;
    }
    if (onLimit === "cancelInProgress") {
      for (const { admitted, superseded } of entries.values()) if (admitted && superseded) waiting -= 1;
      for (const entry of entries.values()) {
        if (waiting <= 0) break;
        if (!entry.admitted || entry.superseded) continue;
        waiting -= 1;
        entry.superseded = true;
        tell(entry, supersededMessage, admissionFacts.superseded);
      }
    }
    if (entries.size === 0) this.#limits.delete(JSON.stringify([tenant, name]));
  }
}
