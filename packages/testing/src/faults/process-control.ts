/** Stops processes and lets them go on, as a machine does that is suspended: to others a frozen one looks dead, and it knows nothing of it. */
import { WovyrError } from "@wovyr/sdk";

/** Stops a process (SIGSTOP): it keeps its memory and its connections, and does nothing until `thaw`. */
export function freeze(pid: number): void {
  if (pid === process.pid) refuse("freeze() would stop the process of the test itself, which nothing could thaw");
  signal(pid, "SIGSTOP", "freeze");
}

/** Lets a frozen process go on (SIGCONT). */
export function thaw(pid: number): void {
  signal(pid, "SIGCONT", "thaw");
}

function signal(pid: number, name: "SIGSTOP" | "SIGCONT", what: string): void {
  // 0 and negative numbers are groups of processes: the test's own among them.
  if (!Number.isSafeInteger(pid) || pid <= 0) refuse(`${what}() takes the number of a process, not ${pid}`);
  if (process.platform === "win32") refuse(`${what}() needs ${name}, which Windows does not have`);
  try {
    process.kill(pid, name);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ESRCH") refuse(`${what}(): there is no process ${pid} any more`);
    throw cause;
  }
}

function refuse(message: string): never {
  throw new WovyrError(message, { code: "INVALID_OPTION" });
}
