/** The code of a function, read from its source. */
import { type AnyNode, type Expression, type Property, parse } from "acorn";
import { type FunctionLike, isFunction } from "./syntax.ts";

export type Source = {
  readonly fn: FunctionLike;
  /** Whether it has no line breaks, as what a bundler wrote. */
  readonly oneLine: boolean;
  /** The text of a part, in one line and not too long. */
  textOf(node: AnyNode): string;
};

/** Characters of source that are read; a longer one is generated, and no picture of it would help. */
const longestSource = 1_000_000;

const longestText = 60;

/** Throws an error that says why a source cannot be read. */
export function readSource(source: string): Source {
  if (source.includes("[native code]")) throw new Error("its code is native or bound");
  if (source.length > longestSource) throw new Error(`its source has more than ${longestSource} characters`);
  const text = [`(${source})`, `({${source}})`].find(parses);
  const expression = text === undefined ? undefined : expressionIn(text);
  const fn = expression?.type === "ObjectExpression" ? (expression.properties[0] as Property | undefined)?.value : expression;
  if (text === undefined || !isFunction(fn)) throw new Error("its source is not that of a function");
  return { fn, oneLine: !source.includes("\n"), textOf: ({ start, end }) => shortened(text.slice(start, end)) };
}

function expressionIn(text: string): Expression | undefined {
  const [statement] = parse(text, { ecmaVersion: "latest", sourceType: "script" }).body;
  return statement?.type === "ExpressionStatement" ? statement.expression : undefined;
}

function parses(text: string): boolean {
  try {
    return isFunction(expressionIn(text)) || text.startsWith("({");
  } catch {
    return false;
  }
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > longestText ? `${line.slice(0, longestText - 1)}…` : line;
}
