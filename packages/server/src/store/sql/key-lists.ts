import type { EffectKey, InstanceKey } from "../../engine/ports/store.ts";
import { isStorable } from "../storable.ts";
import { textList } from "./text-list.ts";

/** Those of the keys that can be in the database at all, as lists of tenants and runs; undefined when none can. */
export function runLists(keys: readonly InstanceKey[]): [string, string] | undefined {
  const known = keys.filter(({ tenant, run }) => isStorable(tenant) && isStorable(run));
  if (known.length === 0) return undefined;
  return [textList(known.map(({ tenant }) => tenant)), textList(known.map(({ run }) => run))];
}

/** The same for effects of runs: tenants, runs and effects. */
export function effectLists(keys: readonly EffectKey[]): [string, string, string] | undefined {
  const known = keys.filter(({ tenant, run, effect }) => isStorable(tenant) && isStorable(run) && isStorable(effect));
  if (known.length === 0) return undefined;
  return [textList(known.map(({ tenant }) => tenant)), textList(known.map(({ run }) => run)), textList(known.map(({ effect }) => effect))];
}
