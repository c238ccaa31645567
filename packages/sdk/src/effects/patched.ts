import { checkName } from "../model/name.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

/** Asks whether a change to the code applies to this run. */
export class PatchedEffect extends Effect<boolean> {
  readonly kind = "patched";
  readonly id: string;

  constructor(id: string, site: CallSite = captureSite(PatchedEffect)) {
    super(site);
    this.id = id;
  }
}

/**
 * True for what is executed for the first time, and recorded then; false where history shows that this place was passed before the change was made. When no
 * run is left that began before the change, delete the call and the old branch: recorded marks are passed over.
 */
export function patched(changeId: string): PatchedEffect {
  checkName(changeId, "the id of a change");
  return new PatchedEffect(changeId, captureSite(patched));
}
