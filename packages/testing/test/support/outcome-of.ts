/** A test file of its own, run: what fails in it is what is asked about. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function outcomeOf(body: string): { readonly code: number | null; readonly text: string } {
  const folder = mkdtempSync(join(import.meta.dirname, "..", ".trouble-"));
  const file = join(folder, "case.test.ts");
  writeFileSync(file, body);
  try {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=source", "--import", "tsx", "--test", "--test-reporter=tap", file],
      {
        encoding: "utf8",
        timeout: 60_000,
        env: { ...process.env, NODE_TEST_CONTEXT: undefined },
      },
    );
    return { code: status, text: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
