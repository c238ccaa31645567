/** Modules that code of a package starts as threads, by their address, from whichever file it is built into. */
export const threads: Readonly<Record<string, readonly string[]>> = {
  server: ["src/platform/watchdog-thread.ts", "src/store/pglite/pglite-thread.ts"],
};
