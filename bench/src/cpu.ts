/** Processor time: of this process, and of a Postgres server with all its processes, where `/proc` tells it. */
import { readdirSync, readFileSync } from "node:fs";

/** What is metered beside this process. */
export type Meter = { readonly postmaster: number | undefined };

export type CpuSeconds = { readonly ours: number; readonly theirs: number | undefined };

/** Starts to count; the function that it returns tells the seconds since then. */
export function cpuMeter({ postmaster }: Meter): () => CpuSeconds {
  const before = process.cpuUsage();
  const theirsBefore = postmaster === undefined ? undefined : familySeconds(postmaster);
  return () => {
    const { user, system } = process.cpuUsage(before);
    const theirs = postmaster === undefined ? undefined : familySeconds(postmaster);
    return {
      ours: (user + system) / 1e6,
      theirs: theirs === undefined || theirsBefore === undefined ? undefined : theirs - theirsBefore,
    };
  };
}

const ticksPerSecond = 100;

/** Seconds of a process, its children and those of its children that have ended; nothing where it cannot be known. */
export function familySeconds(parent: number): number | undefined {
  let ticks = 0;
  let found = false;
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return undefined;
  }
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const fields = statOf(pid);
    if (fields === undefined || (pid !== parent && Number(fields[1]) !== parent)) continue;
    found = true;
    const own = Number(fields[11]) + Number(fields[12]);
    ticks += pid === parent ? own + Number(fields[13]) + Number(fields[14]) : own;
  }
  return found ? ticks / ticksPerSecond : undefined;
}

/** The fields of `/proc/<pid>/stat` from the state on. */
function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
