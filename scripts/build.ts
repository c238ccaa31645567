/**
 * `npm run build`: what is published of each package. Declarations by the compiler (which checks as it goes), code by a bundler: a few files instead of
 * hundreds, which an orchestrator would spend most of its start on loading.
 *
 * 1. Every file that a package's `exports` and `imports` name is built from the source that stands beside it there.
 * 2. What belongs to other packages is left to them, but for what would be most of a start (`bundled`): its license goes with it.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";
import { threads } from "./threads.ts";

const root = join(import.meta.dirname, "..");
const packages = ["sdk", "server", "testing"];

/** Packages of very many small modules, by the one of ours whose code they become part of: the others take them from there, or there would be two of each. */
const bundled: Readonly<Record<string, readonly string[]>> = { sdk: ["@sinclair/typebox"] };

type Conditions = { readonly [condition: string]: string | Conditions };

/** Where each source goes, without extensions, of all entries and conditions. */
function entriesOf(conditions: Conditions): { in: string; out: string }[] {
  const { source, default: built } = conditions;
  if (typeof source === "string" && typeof built === "string")
    return [{ in: source, out: built.replace(/^\.\/dist\//, "").replace(/\.js$/, "") }];
  return Object.values(conditions).flatMap((each) => (typeof each === "string" ? [] : entriesOf(each)));
}

function threadsOf(name: string): { in: string; out: string }[] {
  return (threads[name] ?? []).map((path) => ({ in: `./${path}`, out: basename(path, ".ts") }));
}

function removeOldCode(directory: string): void {
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }))
    if (/\.js(\.map)?$/.test(name)) rmSync(join(directory, name));
}

function bundling(into: string): Plugin {
  return {
    name: "bundled packages",
    setup({ onResolve }) {
      for (const [owner, names] of Object.entries(bundled))
        onResolve({ filter: new RegExp(`^(${names.join("|")})(/|$)`) }, ({ path }) =>
          owner === into
            ? { path: fileURLToPath(import.meta.resolve(path)), sideEffects: false }
            : { errors: [{ text: `"${path}" is part of @wovyr/${owner}: take it from there` }] },
        );
    },
  };
}

const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
execFileSync(process.execPath, [compiler, "-b", ...packages.map((name) => join(root, "packages", name))], { stdio: "inherit" });
for (const name of packages) {
  const directory = join(root, "packages", name);
  const { exports = {}, imports = {} } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  removeOldCode(join(directory, "dist"));
  await build({
    absWorkingDir: directory,
    entryPoints: [...new Map([...entriesOf({ exports, imports }), ...threadsOf(name)].map((entry) => [entry.out, entry])).values()],
    outdir: "dist",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    plugins: [bundling(name)],
    external: ["#*"],
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
  });
  for (const dependency of bundled[name] ?? [])
    copyFileSync(join(root, "node_modules", dependency, "license"), join(directory, "dist", `LICENSE-${basename(dependency)}`));
}
