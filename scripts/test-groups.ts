/**
 * Test files that need no process of their own run several to a process: to load the engine from source takes longer than most of them.
 *
 * 1. Files of these directories leave nothing behind in their process: no environment, no globals, no hooks around the tests of others.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";

const directories = ["packages/sdk/test", "packages/server/test/engine", "packages/server/test/graph", "packages/server/test/operations"];
const filesPerProcess = 6;

/** The files that the runner is to start instead of these, which are relative to `root`; those that stand for several are written into `directory`. */
export function groupedTests(root: string, files: readonly string[], directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  const groups = directories.flatMap((from) => {
    const together = files.filter((file) => file.startsWith(`${from}/`));
    return Array.from({ length: Math.ceil(together.length / filesPerProcess) }, (_, index) => {
      const path = join(directory, `${from.replaceAll("/", "-")}-${index + 1}.test.ts`);
      const members = together.slice(index * filesPerProcess, (index + 1) * filesPerProcess);
      writeFileSync(path, members.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)};\n`).join(""));
      return relative(root, path);
    });
  });
  const alone = files.filter((file) => !directories.some((from) => file.startsWith(`${from}/`)));
  return [...alone, ...groups].sort();
}
