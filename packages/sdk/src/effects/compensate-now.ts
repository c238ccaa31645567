import { type CallSite, captureSite, Effect } from "./effect.ts";

/** Undoes what the scope that it is yielded in has registered so far. */
export class CompensateNowEffect extends Effect<void> {
  readonly kind = "compensateNow";

  constructor(site: CallSite = captureSite(CompensateNowEffect)) {
    super(site);
  }
}

/** Undoes what was registered so far in the saga that it is yielded in, or else in the run; throws `CompensationError` when something could not be undone. */
export function compensateNow(): CompensateNowEffect {
  return new CompensateNowEffect(captureSite(compensateNow));
}
