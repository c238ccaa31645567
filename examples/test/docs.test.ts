import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { errorCodes, routes } from "@wovyr/sdk/internal";
import ts from "typescript";
import { blocksOf, snippetsOf } from "./snippets.ts";

const root = resolve(import.meta.dirname, "../..");
const names = ["README.md", "ARCHITECTURE.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)];
const pages = names.filter((name) => name.endsWith(".md")).map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));
const snippets = pages.flatMap(({ name, text }) => snippetsOf(name, text));

// A directory outside of the repository, as a user's would be: only `node_modules` leads back.
const directory = mkdtempSync(join(tmpdir(), "wovyr-docs-"));
after(() => rmSync(directory, { recursive: true, force: true }));
symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
for (const snippet of snippets) {
  mkdirSync(join(directory, snippet.directory), { recursive: true });
  writeFileSync(pathOf(snippet), snippet.code);
}

function pathOf(snippet: { directory: string; file: string }): string {
  return join(directory, snippet.directory, snippet.file);
}

test("every snippet compiles", () => {
  const config = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile).config;
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, directory);
  const typeRoots = [join(root, "node_modules/@types")];
  const program = ts.createProgram(snippets.map(pathOf), { ...options, noEmit: true, typeRoots });
  const problems = snippets.flatMap((snippet) => {
    const file = program.getSourceFile(pathOf(snippet));
    assert.ok(file, snippet.place);
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(({ start = 0, messageText }) => {
      const { line } = file.getLineAndCharacterOfPosition(start);
      return `${snippet.place}, line ${line + 1} of the block: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  });
  assert.deepEqual(problems, []);
});

// All in one process, one after another: a process for each would spend its time on starting.
const running = snippets.filter(({ mode }) => mode === "run");
const mark = "━━━ next snippet ━━━";
writeFileSync(
  join(directory, "run.ts"),
  `for (const path of ${JSON.stringify(running.map(pathOf))}) {
    console.log("${mark}");
    await import(path).catch((error) => console.log(error));
  }`,
);
const args = ["--conditions=source", "--import", "tsx", "run.ts"];
const ran = promisify(execFile)(process.execPath, args, { cwd: directory, timeout: 150_000 });

for (const [index, snippet] of running.entries()) {
  test(`the snippet at ${snippet.place} prints what it says`, async () => {
    const { stdout } = await ran;
    assert.equal(stdout.split(`${mark}\n`)[index + 1]?.trimEnd(), snippet.output?.trimEnd() ?? "");
  });
}

test("every test in the documentation passes", async () => {
  const files = snippets.filter(({ mode }) => mode === "test").map(pathOf);
  // Not a part of this run: it would report into it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=source", "--import", "tsx", "--test", ...files], {
    cwd: directory,
    env,
  });
  assert.match(stdout, /pass [1-9]/);
});

test("every link within the documentation leads somewhere", () => {
  const broken = pages.flatMap(({ name, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]+)[^)]*\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !existsSync(join(root, dirname(name), target)))
      .map((target) => `${name}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test("commands in the documentation exist in package.json", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };
  const known = new Set(["ci", ...Object.keys(scripts)]);
  for (const { name, text } of pages)
    for (const { info, text: code } of blocksOf(text))
      if (info[0] === "sh")
        for (const [, command = ""] of code.matchAll(/npm (?:run )?([\w:-]+)/g))
          assert.ok(known.has(command), `${name}: npm run ${command}`);
});

test("the page of errors lists every code of the catalogue as it is", () => {
  const page = pages.find(({ name }) => name === "docs/errors.md")?.text ?? "";
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \| (yes|no) \| (.+) \|$/gm)].map(([, code, status, again, advice]) => ({
    code,
    status: Number(status),
    retryable: again === "yes",
    isAdvised: advice?.trim() !== "",
  }));
  const catalogue = Object.entries(errorCodes).map(([code, row]) => ({ code, ...row, isAdvised: true }));
  const byCode = (a: { code?: string | undefined }, b: { code?: string | undefined }) => (a.code ?? "").localeCompare(b.code ?? "");
  assert.deepEqual(rows.sort(byCode), catalogue.sort(byCode));
});

test("the page of the REST API lists every route, and no other", () => {
  const page = pages.find(({ name }) => name === "docs/rest.md")?.text ?? "";
  const rows = [...page.matchAll(/^\| `(GET|POST|DELETE) (\/[^`?]*)(?:\?[^`]*)?` \|/gm)].map(([, method, path]) => `${method} ${path}`);
  assert.deepEqual(
    rows.sort(),
    Object.values(routes)
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  );
});
