import type { BranchList } from "./branches.ts";
import { type Branch, type CallSite, captureSite, Effect } from "./effect.ts";

export type CombinatorKind = "all" | "settled" | "any" | "race";

/** Runs branches at once; `all.ts`, `settled.ts`, `any.ts` and `race.ts` say what it results in. */
export class CombinatorEffect<out T> extends Effect<T> {
  readonly kind: CombinatorKind;
  readonly branches: readonly Branch[];
  /** The names of a record of branches; undefined for an array or tuple. */
  readonly keys: readonly string[] | undefined;

  constructor(kind: CombinatorKind, list: BranchList, site: CallSite = captureSite(CombinatorEffect)) {
    super(site);
    this.kind = kind;
    this.branches = list.branches;
    this.keys = list.keys;
  }
}
