/**
 * Test files that need no process of their own run several to a process: to load the engine from source takes longer than most of them.
 *
 * 1. They leave nothing behind in their process: no environment, no globals, no hooks around the tests of others.
 * 2. A file runs alone when it takes long, so that both processes at a time have something to do, or when it looks at its process as a whole.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";

const workspaces = ["packages/sdk", "packages/server", "packages/testing", "examples"];
const filesPerProcess = 10;

const server = "packages/server/test";
/** Directories, with the slash, and files. */
const alone: readonly string[] = [
  // Long ones.
  `${server}/chaos/`,
  `${server}/model/`,
  `${server}/cluster/processes.test.ts`,
  `${server}/cluster/routing.test.ts`,
  `${server}/http/event-log.test.ts`,
  `${server}/http/fuzz.test.ts`,
  `${server}/queues/processes.test.ts`,
  `${server}/recovery/closing-in-process.test.ts`,
  `${server}/recovery/graceful-close-pglite.test.ts`,
  `${server}/recovery/killer-activity.test.ts`,
  `${server}/recovery/outage.test.ts`,
  `${server}/recovery/overdue-timers.test.ts`,
  `${server}/recovery/sigkill-pglite.test.ts`,
  `${server}/recovery/sigkill-postgres.test.ts`,
  `${server}/recovery/takeover.test.ts`,
  `${server}/recovery/waiting-explained.test.ts`,
  `${server}/recovery/watchdog-pglite.test.ts`,
  `${server}/recovery/watchdog-postgres.test.ts`,
  `${server}/store/`,
  `${server}/transactional/`,
  "packages/testing/test/disposal.test.ts",
  "packages/testing/test/explore-every-effect.test.ts",
  "packages/testing/test/patience.test.ts",
  "packages/testing/test/replay.test.ts",
  "examples/test/approval.test.ts",
  "examples/test/built.test.ts",
  "examples/test/demo.test.ts",
  "examples/test/docs.test.ts",
  "examples/test/start.test.ts",
  // Those that measure time or memory, or change how their process is told of what goes wrong.
  `${server}/recovery/many-timers.test.ts`,
  `${server}/recovery/memory.test.ts`,
  "packages/testing/test/trouble.test.ts",
];

const isAlone = (file: string): boolean => alone.some((each) => (each.endsWith("/") ? file.startsWith(each) : file === each));

/** The files that the runner is to start instead of these, which are relative to `root`; those that stand for several are written into `directory`. */
export function groupedTests(root: string, files: readonly string[], directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  const together = files.filter((file) => !isAlone(file));
  const groups = workspaces.flatMap((workspace) => {
    const own = together.filter((file) => file.startsWith(`${workspace}/`));
    return Array.from({ length: Math.ceil(own.length / filesPerProcess) }, (_, index) => {
      const path = join(directory, `${workspace.replaceAll("/", "-")}-${index + 1}.test.ts`);
      const members = own.slice(index * filesPerProcess, (index + 1) * filesPerProcess);
      writeFileSync(path, members.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)};\n`).join(""));
      return relative(root, path);
    });
  });
  return [...files.filter(isAlone), ...groups];
}
