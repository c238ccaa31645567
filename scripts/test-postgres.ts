/**
 * A real Postgres for tests, with its default durability.
 *
 * 1. It listens on the loopback interface only, on a free port, and keeps its data in a temporary directory of its own.
 * 2. `stop` ends it and removes the directory. What a killed test run left behind is stopped and removed by the next start.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPostgres, type PostgresBinaries, type ProcessUser, serverUser } from "./postgres-binaries.ts";

export type TestPostgres = {
  readonly url: string;
  readonly version: string;
  /** What the server logged so far, since its last start. */
  log(): string;
  /** Ends it, in the middle of whatever it does, and starts it again under its address: `fast` rolls back and checkpoints, `immediate` leaves that to the recovery. */
  restart(mode: "fast" | "immediate"): Promise<void>;
  stop(): Promise<void>;
};

const prefix = "wovyr-test-postgres-";
const superuser = "wovyr";
const attempts = 5;

export async function startPostgres(): Promise<TestPostgres> {
  removeLeftovers();
  const user = serverUser();
  const binaries = findPostgres(user);
  const directory = mkdtempSync(join(tmpdir(), prefix));
  writeFileSync(join(directory, "parent"), `${process.pid} ${startOf(process.pid)}`);
  const data = join(directory, "data");
  mkdirSync(data, { mode: 0o700 });
  if (user !== undefined) for (const path of [directory, data]) chownSync(path, user.uid, user.gid);
  try {
    execFileSync(
      join(binaries.bin, "initdb"),
      ["-D", data, "-U", superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
      {
        cwd: directory,
        stdio: ["ignore", "pipe", "pipe"],
        env: serverEnvironment(),
        ...user,
      },
    );
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort();
      const started = await startServer(binaries, data, port, user);
      if (started !== undefined) return running(started, () => startServer(binaries, data, port, user), binaries.version, directory);
      if (attempt === attempts) throw new Error(`Postgres found no free port in ${attempts} attempts`);
    }
  } catch (error) {
    remove(directory);
    throw error;
  }
}

type Server = { readonly url: string; log(): string; stop(signal?: NodeJS.Signals): Promise<void> };

function running(first: Server, again: () => Promise<Server | undefined>, version: string, directory: string): TestPostgres {
  let server = first;
  return {
    url: first.url,
    version,
    log: () => server.log(),
    async restart(mode) {
      await server.stop(mode === "fast" ? "SIGINT" : "SIGQUIT");
      const next = await again();
      if (next === undefined) throw new Error("Postgres could not be started again: somebody else has taken its port");
      server = next;
    },
    stop: () => server.stop().finally(() => remove(directory)),
  };
}

/** Starts the server; undefined when somebody else took the port first. */
async function startServer(binaries: PostgresBinaries, data: string, port: number, user: ProcessUser): Promise<Server | undefined> {
  const settings = [
    `listen_addresses=127.0.0.1`,
    `port=${port}`,
    "unix_socket_directories=",
    "max_connections=100",
    "log_min_messages=warning",
  ];
  const server = spawn(join(binaries.bin, "postgres"), ["-D", data, ...settings.flatMap((setting) => ["-c", setting])], {
    cwd: data,
    stdio: ["ignore", "pipe", "pipe"],
    env: serverEnvironment(),
    detached: true,
    ...user,
  });
  let log = "";
  const ended = new Promise<void>((resolve) => server.once("close", () => resolve()));
  const ready = new Promise<boolean>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      log = (log + chunk.toString()).slice(-1_000_000);
      if (log.includes("database system is ready to accept connections")) resolve(true);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.once("error", reject);
    void ended.then(() =>
      /could not bind|Address already in use/.test(log) ? resolve(false) : reject(new Error(`Postgres did not start:\n${log}`)),
    );
  });
  if (!(await ready)) return undefined;
  server.unref();
  for (const stream of [server.stdout, server.stderr]) (stream as unknown as { unref?(): void }).unref?.();
  return {
    url: `postgres://${superuser}@127.0.0.1:${port}/postgres`,
    log: () => log,
    stop: (signal = "SIGINT") => stopServer(server, ended, signal),
  };
}

async function stopServer(server: ChildProcess, ended: Promise<void>, signal: NodeJS.Signals): Promise<void> {
  server.ref();
  server.kill(signal);
  const impatient = setTimeout(() => server.kill("SIGQUIT"), 10_000);
  await ended;
  clearTimeout(impatient);
}

function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}

function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const directory = join(tmpdir(), name);
    const parent = read(join(directory, "parent"));
    if (parent === undefined) continue;
    const [pid, start] = parent.split(" ");
    if (startOf(Number(pid)) === start) continue;
    const lines = read(join(directory, "data", "postmaster.pid"))?.split("\n");
    if (lines?.[1] === join(directory, "data") && isPostgres(Number(lines[0]))) process.kill(Number(lines[0]), "SIGQUIT");
    remove(directory);
  }
}

function remove(directory: string): void {
  rmSync(directory, {
    recursive: true,
    force: true,
    maxRetries: 10,
    retryDelay: 100,
  });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** When a process started, in a form that only this machine understands; `gone` when there is none. */
function startOf(pid: number): string {
  if (existsSync("/proc/self/stat")) {
    const stat = read(`/proc/${pid}/stat`);
    return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "gone";
  }
  const answer = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], {
    encoding: "utf8",
  });
  return answer.status === 0 ? answer.stdout.trim().replaceAll(" ", "_") : "gone";
}

function isPostgres(pid: number): boolean {
  const command = read(`/proc/${pid}/cmdline`) ?? spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout;
  return command.includes("postgres");
}
