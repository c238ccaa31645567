/** What people say about an operation on a run, for others to read: its `reason`, or the `note` of a decision. */
import { WovyrError } from "./errors.ts";

/** Characters. */
export const longestRemark = 1_000;

/** `{ reason }` or `{ note }`, without it when there is none; throws INVALID_OPTION for what is no text, or a longer one. */
export function remark<Name extends "reason" | "note">(name: Name, text: string | undefined): { readonly [name in Name]?: string } {
  if (text === undefined) return {};
  if (typeof text === "string" && text.length <= longestRemark) return { [name]: text } as { readonly [name in Name]?: string };
  const given = typeof text === "string" ? `one of ${text.length.toLocaleString("en")}` : `a value of type ${typeof text}`;
  throw new WovyrError(`${name} must be a text of ${longestRemark.toLocaleString("en")} characters at most, not ${given}`, {
    code: "INVALID_OPTION",
  });
}
