import { functionKind } from "../define/function-kind.ts";
import { WovyrError } from "../model/errors.ts";
import { type CallSite, captureSite, Effect } from "./effect.ts";

/** Records what a synchronous function returns. */
export class SideEffect<out T> extends Effect<T> {
  readonly kind = "sideEffect";
  readonly fn: () => T;

  constructor(fn: () => T, site: CallSite = captureSite(SideEffect)) {
    super(site);
    this.fn = fn;
  }
}

/** Calls a quick synchronous function and records its value; it may run again when the process dies before the turn is stored. */
export function sideEffect<R>(fn: () => R): SideEffect<R> {
  if (functionKind(fn) !== "function") {
    throw new WovyrError("sideEffect takes a synchronous function; what waits belongs in an activity or in `step(name, fn)`", {
      code: "INVALID_OPTION",
    });
  }
  return new SideEffect(fn, captureSite(sideEffect));
}
