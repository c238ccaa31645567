/** Whether a call stands alone as a statement, so that nobody can use what it returns: found in the source, where that can be read. */
import { readFileSync } from "node:fs";

/** `at` is `file:line:column`, as stacks name a call. False when that cannot be told. */
export function isStatementAt(at: string): boolean {
  const [, file, line, column] = /^(.+):(\d+):(\d+)$/.exec(at) ?? [];
  if (file === undefined) return false;
  try {
    const lines = readFileSync(file, "utf8").split("\n").slice(0, Number(line));
    lines.push((lines.pop() ?? "").slice(0, Number(column) - 1));
    return endsBeforeStatement(lines.map((text) => text.replace(/\/\/.*$/, "")).join("\n"));
  } catch {
    return false;
  }
}

/** What an expression may follow within a statement. */
const goesOn = /(?:^|[^\w$.])(?:return|await|void|typeof|new|in|of|case|throw|delete|yield|instanceof|extends|default)$/;

/** Whether what follows `before` begins a statement. */
function endsBeforeStatement(before: string): boolean {
  // `shop.` of `shop.charge(…)`, and comments.
  const left = before.replace(/(?:[\w$]+\s*\??\.\s*)+$/, "").replace(/(?:\/\*[^]*?\*\/|\s)+$/, "");
  if (left === "" || /[;{})]$/.test(left) || /(?:^|[^\w$.])(?:else|do)$/.test(left)) return true;
  // Without semicolons: a value, then a new line.
  return /[\w$\]"'`]$/.test(left) && before.slice(left.length).includes("\n") && !goesOn.test(left);
}
