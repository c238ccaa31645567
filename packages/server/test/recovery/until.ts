import { setTimeout as pause } from "node:timers/promises";

/** Looks again and again until what it sees is neither undefined nor false; fails after `limit` milliseconds. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limit = 20_000,
  interval = 20,
): Promise<T> {
  const deadline = performance.now() + limit;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`in ${limit} ms it did not come about that ${what}`);
    await pause(interval);
  }
}

/** The value of a promise, or an error that says what took too long. */
export async function within<T>(what: string, limit: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${limit} ms`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
