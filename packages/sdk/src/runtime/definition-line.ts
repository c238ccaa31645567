/** Where workflows were defined: the line to name when a run has come to no yield of its own yet. */
import type { CallSite } from "../effects/effect.ts";
import { lineOf } from "./call-site.ts";

/** The frames of this package that lie between, and the user's. */
const depth = 6;

const sites = new WeakMap<object, CallSite>();

/** Called while a workflow is being defined, with its function. */
export function rememberDefinition(run: object): void {
  const site: CallSite = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = depth;
  Error.captureStackTrace(site, rememberDefinition);
  Error.stackTraceLimit = limit;
  sites.set(run, site);
}

/** `file:line:column` of the definition that has this function. */
export function definitionLine(run: object | undefined): string | undefined {
  const site = run === undefined ? undefined : sites.get(run);
  return site && lineOf(site);
}
