import type { CallSite } from "../effects/effect.ts";

/** Frames of this package and of the platform are not the user's line. */
const foreign = /node:internal|[\\/](?:packages[\\/]sdk|@wovyr[\\/]sdk)[\\/](?:src|dist)[\\/]|<anonymous>$/;
const location = /\(?((?:file:\/\/|[A-Za-z]:\\|\/|[\w.@-]+:)?[^()\s]*:\d+:\d+)\)?$/;

/** `file:line:column` of the first frame that is the user's, or undefined when the stack holds none. */
export function lineOf(site: CallSite): string | undefined {
  for (const frame of (site.stack ?? "").split("\n").slice(1)) {
    if (foreign.test(frame)) continue;
    const match = location.exec(frame.trim());
    if (match?.[1]) return match[1].replace(/^file:\/\//, "");
  }
  return undefined;
}
