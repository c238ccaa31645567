/** How a node is called in the store, and which of such names belong to processes that are known to be dead. */

/** `host:pid:nonce`. */
export const processName = (host: string, pid: number, nonce: string): string => `${host}:${pid}:${nonce}`;

/** The machine that a process runs on. */
export const hostOfProcess = (name: string): string => name.split(":").slice(0, -2).join(":");

/** Processes of this host that no longer exist: their shards need no lease to run out. */
export function deadProcesses(names: readonly string[], host: string): string[] {
  return names.filter((name) => {
    const parts = name.split(":");
    const pid = Number(parts[parts.length - 2]);
    return hostOfProcess(name) === host && Number.isInteger(pid) && pid > 0 && !isAlive(pid);
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
