/**
 * Builds what tests of the server run as processes of their own (`*-process.ts`): a built one starts in a sixth of the processor time.
 *
 * 1. The code of this repository is bundled from source, whatever `dist` holds; what it depends on is left where it is.
 * 2. They stand where `dist` stands: from there code finds its migrations and its threads.
 */
import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { build, type Plugin } from "esbuild";
import { threads } from "./threads.ts";

const server = join(import.meta.dirname, "../packages/server");

const dependenciesStay: Plugin = {
  name: "dependencies stay",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./#]/ }, ({ path, kind }) =>
      kind === "entry-point" || path.startsWith("@wovyr/") ? undefined : { external: true },
    );
  },
};

/** Resolves with the directory that they are in. */
export async function buildTestProcesses(): Promise<string> {
  const outdir = join(server, "dist-test");
  const processes = readdirSync(join(server, "test"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("-process.ts"));
  rmSync(outdir, { recursive: true, force: true });
  await build({
    absWorkingDir: server,
    entryPoints: [...processes.map((name) => join("test", name)), ...(threads.server ?? [])].map((path) => ({
      in: path,
      out: basename(path, ".ts"),
    })),
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["source"],
    plugins: [dependenciesStay],
    sourcemap: "inline",
    sourcesContent: false,
    logLevel: "warning",
  });
  return outdir;
}
