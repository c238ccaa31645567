import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isStatementAt } from "@wovyr/server/internal";

const directory = mkdtempSync(join(tmpdir(), "wovyr-statement-"));
after(() => rmSync(directory, { recursive: true }));
const file = join(directory, "code.ts");

/** Where `charge` stands in the code. */
function at(code: string): string {
  writeFileSync(file, code);
  const before = code.slice(0, code.indexOf("charge(")).split("\n");
  return `${file}:${before.length}:${(before.at(-1) ?? "").length + 1}`;
}

const statements = [
  "charge(1);",
  "x = 1; charge(1);",
  "async function* () { charge(1); }",
  "{\n  charge(1);\n}",
  "}\ncharge(1)",
  "if (a) charge(1);",
  "if (a) b(); else charge(1);",
  "foo()\n  charge(1)",
  "const a = 1\ncharge(1)",
  "const a = b\nshop.charge(1)",
  "const a = 'text'\ncharge(1)",
  "a(); // and then\n// this:\ncharge(1);",
  "a(); /* and then */ /* this */ charge(1);",
  "a();\nshop.acts?.charge(1).with({});",
];
const expressions = [
  "const a = charge(1);",
  "const a = [\n  charge(1),\n  2\n];",
  "const a = [\n  2,\n  charge(1),\n];",
  "const a = { b: charge(1) };",
  "yield* charge(1);",
  "await charge(1);",
  "return charge(1);",
  "void charge(1);",
  "() => charge(1)",
  "if (charge(1)) {}",
  "const a = b ? charge(1) : 2;",
  "const a = b\n  ?? charge(1);",
  "const a = // later\n  charge(1);",
  "const a = /* later */ charge(1);",
  "run(shop.charge(1));",
];

for (const code of statements) test(`stands alone: ${JSON.stringify(code)}`, () => assert.equal(isStatementAt(at(code)), true));
for (const code of expressions) test(`is part of something: ${JSON.stringify(code)}`, () => assert.equal(isStatementAt(at(code)), false));

test("what cannot be read stands in no statement", () => {
  assert.equal(isStatementAt("/no/such/file.ts:1:1"), false);
  assert.equal(isStatementAt("nonsense"), false);
  assert.equal(isStatementAt(`${file}:999:1`), false);
});
