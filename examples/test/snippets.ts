/**
 * Snippets of the documentation.
 *
 * 1. Every block of TypeScript begins with "```ts check", "```ts run" or "```ts test". All are type-checked; the second is also run, the third run as a
 *    test file.
 * 2. `file=name.ts` gives a block a name, so that later blocks of the page can import it.
 * 3. A block of "```text output" after one that runs is what it prints; without one it prints nothing.
 */
import { basename } from "node:path";

export type Snippet = {
  /** Page and line, for messages. */
  readonly place: string;
  readonly directory: string;
  readonly file: string;
  readonly code: string;
  readonly mode: "check" | "run" | "test";
  readonly output?: string;
};

type Block = { readonly info: readonly string[]; readonly line: number; readonly text: string };

const fence = /^```([^\n`]*)\n([\s\S]*?)^```$/gm;

export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(fence)].map(({ index, 1: info = "", 2: text = "" }) => ({
    info: info.trim().split(/\s+/),
    line: markdown.slice(0, index).split("\n").length,
    text,
  }));
}

export function snippetsOf(page: string, markdown: string): Snippet[] {
  const blocks = blocksOf(markdown);
  return blocks.flatMap(({ info, line, text }, index) => {
    const [language, mode = "", ...options] = info;
    if (language !== "ts") return [];
    const place = `${page}:${line}`;
    if (mode !== "check" && mode !== "run" && mode !== "test") throw new Error(`${place}: write \`ts check\`, \`ts run\` or \`ts test\``);
    const next = blocks[index + 1];
    const directory = basename(page, ".md").toLowerCase();
    const file = options.find((option) => option.startsWith("file="))?.slice("file=".length) ?? `snippet-${line}.ts`;
    const output = next?.info.join(" ") === "text output" ? next.text : undefined;
    return [{ place, directory, file, code: text, mode, ...(output !== undefined && { output }) }];
  });
}
