import { type CallSite, captureSite, Effect } from "./effect.ts";

export type ContinueAsNewOptions = {
  /** Default: the version of this run. */
  readonly version?: string | undefined;
};

/** Ends this run and begins the next one of the same instance. */
export class ContinueAsNewEffect extends Effect<never> {
  readonly kind = "continueAsNew";
  readonly input: unknown;
  readonly version: string | undefined;

  constructor(input: unknown, version: string | undefined, site: CallSite = captureSite(ContinueAsNewEffect)) {
    super(site);
    this.input = input;
    this.version = version;
  }
}
