/**
 * One process per directory.
 *
 * 1. The holder is the owner named by the lock file with the highest number. Numbers only rise: a lock is taken by creating the next file, which
 *    succeeds for one process only, and older files go after that. Giving it up marks the file; it stays as the highest.
 * 2. A lock is taken from a process that is gone, or whose number now belongs to a process that started later; never from one that lives.
 * 3. A process on another machine (or in another container) cannot be seen: its lock is respected.
 */
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { WovyrError } from "@wovyr/sdk";
import { processStart } from "./process-identity.ts";

type Owner = { readonly pid: number; readonly start: string | undefined; readonly host: string; readonly released?: boolean };

const pattern = /^lock\.(\d+)$/;

export class DirectoryLock {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Takes the lock of a directory, or throws STORE_LOCKED. */
  static acquire(directory: string): DirectoryLock {
    for (;;) {
      const highest = highestLock(directory);
      if (highest > 0) refuseLiveOwner(directory, highest);
      const path = lockPath(directory, highest + 1);
      if (!create(path)) continue;
      if (highestLock(directory) > highest + 1) {
        rmSync(path, { force: true });
        continue;
      }
      for (const number of lockNumbers(directory)) if (number <= highest) rmSync(lockPath(directory, number), { force: true });
      return new DirectoryLock(path);
    }
  }

  release(): void {
    replace(this.#path, { ...self(), released: true });
  }
}

function self(): Owner {
  return { pid: process.pid, start: processStart(process.pid), host: hostname() };
}

function lockPath(directory: string, number: number): string {
  return join(directory, `lock.${number}`);
}

function lockNumbers(directory: string): number[] {
  return readdirSync(directory).flatMap((name) => {
    const number = pattern.exec(name)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
}

function highestLock(directory: string): number {
  return Math.max(0, ...lockNumbers(directory));
}

function refuseLiveOwner(directory: string, number: number): void {
  const path = lockPath(directory, number);
  let owner: Owner;
  try {
    owner = JSON.parse(readFileSync(path, "utf8")) as Owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw new WovyrError(`the lock ${path} cannot be read; remove it if no process uses ${directory}`, {
      code: "STORE_LOCKED",
      cause: error,
    });
  }
  if (owner.released) return;
  if (owner.host !== hostname()) {
    throw new WovyrError(
      `${directory} is in use by process ${owner.pid} on host ${owner.host}; end it, or remove ${path} if that host is gone`,
      { code: "STORE_LOCKED" },
    );
  }
  const start = processStart(owner.pid);
  if (start === undefined || (owner.start !== undefined && owner.start !== start)) return;
  throw new WovyrError(`${directory} is in use by process ${owner.pid}; end it, or choose another directory`, { code: "STORE_LOCKED" });
}

/** Creates a lock file with its content at once; false when it exists. */
function create(path: string): boolean {
  const draft = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  writeFileSync(draft, JSON.stringify(self()));
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function replace(path: string, owner: Owner): void {
  const draft = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  writeFileSync(draft, JSON.stringify(owner));
  renameSync(draft, path);
}
