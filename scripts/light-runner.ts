/**
 * Loaded before the tests of a whole run: `node:test` follows every promise, to know of which test an unhandled error is; here it follows its own tests and suites only.
 *
 * 1. That costs a quarter of the processor time of tests that simulate the engine (measured on the model's programs, Node 20: 58 s when it follows everything, 44 s so).
 * 2. An unhandled error fails its file all the same, with its message. Run that file by name to be told of the test as well: then nothing is taken from the runner.
 */
import hooks, { type HookCallbacks } from "node:async_hooks";

const { createHook } = hooks;
const ofTestsOnly = ({ init }: HookCallbacks) =>
  createHook({
    init(id, type, trigger, resource) {
      if (type === "Test") init?.(id, type, trigger, resource);
    },
  });
// The runner takes what it finds here once, when it is loaded.
Object.assign(hooks, { createHook: ofTestsOnly });
await import("node:test");
Object.assign(hooks, { createHook });
