/** Whether a call stands alone as a statement, so that nobody can use what it returns: found in the source, where that can be read. */
import { readFileSync } from "node:fs";

/** `at` is `file:line:column`, as stacks name a call. False when that cannot be told. */
export function isStatementAt(at: string): boolean {
  const [, file, line, column] = /^(.+):(\d+):(\d+)$/.exec(at) ?? [];
  if (file === undefined) return false;
  try {
    const lines = readFileSync(file, "utf8").split("\n").slice(0, Number(line));
    if (lines.length < Number(line)) return false;
    lines.push((lines.pop() ?? "").slice(0, Number(column) - 1));
    return endsBeforeStatement(lines.map((text) => text.replace(/\/\/.*$/, "")).join("\n"));
  } catch {
    return false;
  }
}

/** Characters before the call that are looked at. */
const looksBack = 4_000;

/** What an expression may follow within a statement. */
const goesOn = /(?:^|[^\w$.])(?:return|await|void|typeof|new|in|of|case|throw|delete|yield|instanceof|extends|default)$/;

/** Whether what follows `before` begins a statement. */
function endsBeforeStatement(before: string): boolean {
  // Without the `shop.` of `shop.charge(…)`.
  const left = withoutComments(before.slice(-looksBack).replace(/(?:[\w$]+\s*\??\.\s*)+$/, ""));
  if (left === "" || /[;{})]$/.test(left) || /(?:^|[^\w$.])(?:else|do)$/.test(left)) return true;
  // Without semicolons: a value, then a new line.
  return /[\w$\]"'`]$/.test(left) && before.slice(-looksBack).slice(left.length).includes("\n") && !goesOn.test(left);
}

/** Without the blanks and the comments at its end. */
function withoutComments(text: string): string {
  for (let left = text.trimEnd(); ; left = left.slice(0, Math.max(0, left.lastIndexOf("/*"))).trimEnd())
    if (!left.endsWith("*/")) return left;
}
