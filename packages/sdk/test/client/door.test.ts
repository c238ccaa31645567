import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const importOrExport = /^(?:import|export)\b(?!\s+type\b)[^;]*?from\s+"([^"]+)";/gm;

const root = join(import.meta.dirname, "../..");

/** What package.json gives a browser for `#default-exchange`. */
function browserExchange(): string {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return join(root, imports["#default-exchange"].browser.source);
}

/** Everything that a file loads when it runs, through the files of this package. */
function loads(file: string, seen: Set<string>, packages: Set<string>): void {
  if (seen.has(file)) return;
  seen.add(file);
  for (const [, target = ""] of readFileSync(file, "utf8").matchAll(importOrExport)) {
    if (target === "#default-exchange") loads(browserExchange(), seen, packages);
    else if (target.startsWith(".")) loads(join(dirname(file), target), seen, packages);
    else packages.add(target);
  }
}

test("the client's door loads nothing that a browser lacks, and nothing of the replay runtime", () => {
  const files = new Set<string>();
  const packages = new Set<string>();
  loads(join(root, "src/client.ts"), files, packages);
  assert.deepEqual([...packages].sort(), ["@sinclair/typebox", "devalue", "nanoid"]);
  for (const file of files) {
    assert.doesNotMatch(file, /\/src\/(?:runtime|effects)\//);
    assert.doesNotMatch(readFileSync(file, "utf8"), /\b(?:process|Buffer)\.\w/, file);
  }
});
