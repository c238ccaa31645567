/**
 * Tells when workflow code calls what no replay can repeat: the time of day, chance, timers, the network.
 *
 * 1. Who is calling is known by the asynchronous context: activities whose code runs in between are never accused, nor is the platform itself, the SDK or
 *    a logger.
 * 2. Globals are changed once for the process, when the first guard is made, and changed back when the last one is gone. Outside of workflow code a call
 *    does what it did.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { AuthoringError, WovyrError } from "@wovyr/sdk";
import type { WorkflowGuard } from "@wovyr/sdk/internal";
import type { EngineLog } from "../engine/ports/log.ts";

/** `warn` tells each line once in the log, `error` throws at the call. */
export type DeterminismGuard = "warn" | "error" | "off";

export interface Guard extends WorkflowGuard {
  /** It watches nothing any more. */
  dispose(): void;
}

/** Undefined for `off`. Throws INVALID_OPTION for what is no mode. */
export function determinismGuard(mode: DeterminismGuard, log: EngineLog): Guard | undefined {
  if (mode !== "warn" && mode !== "error" && mode !== "off")
    throw new WovyrError('determinismGuard must be "warn", "error" or "off"', { code: "INVALID_OPTION" });
  return mode === "off" ? undefined : new GlobalsGuard(mode, log);
}

type Watched = { readonly guard: GlobalsGuard; readonly workflow: string; readonly inside: () => boolean };
type Anything = (...args: never[]) => unknown;

const watched = new AsyncLocalStorage<Watched>();
/** Lines that one guard tells. */
const maxTold = 1_000;

class GlobalsGuard implements Guard {
  readonly #mode: "warn" | "error";
  readonly #log: EngineLog;
  readonly #told = new Set<string>();
  #disposed = false;

  constructor(mode: "warn" | "error", log: EngineLog) {
    this.#mode = mode;
    this.#log = log;
    patches.acquire();
  }

  enter<T>(workflow: string, inside: () => boolean, run: () => T): T {
    return this.#disposed ? run() : watched.run({ guard: this, workflow, inside }, run);
  }

  met(workflow: string, call: string, advice: string, line: string): void {
    const message = `${call} was called in workflow "${workflow}" at ${line}: a replay would not get the same. ${advice}`;
    if (this.#mode === "error") throw new AuthoringError(message, "NONDETERMINISTIC_CALL");
    const key = `${call} ${line}`;
    if (this.#told.has(key) || this.#told.size >= maxTold) return;
    this.#told.add(key);
    watched.exit(() => this.#log.warn(message, { workflow, code: "NONDETERMINISTIC_CALL", at: line }));
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    patches.release();
  }
}

function check(call: string, advice: string, wrapper: Anything): void {
  const watch = watched.getStore();
  if (watch === undefined || !watch.inside()) return;
  const line = callingLine(wrapper);
  if (line !== undefined) watch.guard.met(watch.workflow, call, advice, line);
}

// ── who called ───────────────────────────────────────────────────────────────────────────────────────────

const depth = 12;
const loggers = "pino|winston|bunyan|consola|debug|loglevel|tslog|@opentelemetry";
const trusted = new RegExp(
  String.raw`^node:|[\\/](?:packages|@wovyr)[\\/](?:sdk|server|testing)[\\/](?:src|dist)[\\/]|node_modules[\\/](?:${loggers})[\\/]`,
);
/** The line that made the call, or through which a library did; undefined when it was made by what may. */
function callingLine(above: Anything): string | undefined {
  const holder: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = depth;
  Error.captureStackTrace(holder, above);
  Error.stackTraceLimit = limit;
  const frames = (holder.stack ?? "").split("\n").slice(1);
  const callers = frames.map(placeOf).filter((place) => place !== undefined);
  const [caller] = callers;
  if (caller === undefined || trusted.test(caller)) return undefined;
  return callers.find((place) => !place.includes("node_modules") && !trusted.test(place)) ?? caller;
}

/** `file:line:column` of a frame; undefined for a native function. */
function placeOf(frame: string): string | undefined {
  const text = frame.trim();
  const place = text.endsWith(")") ? text.slice(text.lastIndexOf(" (") + 2, -1) : text.replace(/^at (?:async )?/, "");
  return /:\d+:\d+$/.test(place) ? place.replace(/^file:\/\//, "") : undefined;
}

// ── what is watched ──────────────────────────────────────────────────────────────────────────────────────

const time = "Use `ctx.now()`.";
const chance = "Use `ctx.random()`.";
const waiting = "Use `yield* sleep(…)`.";
const later = "Yield effects instead; what has to run apart belongs in `yield* spawn(…)` or in an activity.";

class Patches {
  #holders = 0;
  #undo: (() => void)[] = [];

  acquire(): void {
    if (this.#holders++ === 0) this.#install();
  }

  release(): void {
    if (--this.#holders > 0) return;
    for (const undo of this.#undo.reverse()) undo();
    this.#undo = [];
    syncBuiltinESMExports();
  }

  #install(): void {
    const builtIn = createRequire(import.meta.url);
    this.#date();
    this.#wrap(Math, "random", "Math.random()", chance);
    this.#wrap(performance, "now", "performance.now()", time);
    for (const timer of ["setTimeout", "setInterval", "setImmediate"] as const) {
      this.#wrap(globalThis, timer, `${timer}()`, waiting);
      this.#wrap(builtIn("node:timers"), timer, `${timer}()`, waiting);
    }
    this.#wrap(globalThis, "queueMicrotask", "queueMicrotask()", later);
    this.#wrap(process, "nextTick", "process.nextTick()", later);
    this.#hrtime();
    this.#wrap(globalThis, "fetch", "fetch()", "Put it into an activity or a step: `yield* step(name, async () => …)`.");
    for (const holder of [globalThis.crypto, builtIn("node:crypto")]) {
      this.#wrap(holder, "randomUUID", "crypto.randomUUID()", "Use `ctx.uuid()`.");
      const bytes = "Draw them in `yield* sideEffect(() => …)`, which records them.";
      this.#wrap(holder, "getRandomValues", "crypto.getRandomValues()", bytes);
      this.#wrap(holder, "randomBytes", "crypto.randomBytes()", bytes);
      this.#wrap(holder, "randomInt", "crypto.randomInt()", chance);
    }
    syncBuiltinESMExports();
  }

  #wrap(holder: object, key: string, call: string, advice: string): void {
    const real = (holder as Record<string, unknown>)[key];
    if (typeof real === "function") this.#put(holder, key, wrapped(real as Anything, call, advice));
  }

  #hrtime(): void {
    const wrapper = wrapped(process.hrtime as Anything, "process.hrtime()", time);
    const bigint = wrapped(process.hrtime.bigint as Anything, "process.hrtime.bigint()", time);
    Object.defineProperty(wrapper, "bigint", { value: bigint, configurable: true, writable: true, enumerable: true });
    this.#put(process, "hrtime", wrapper);
  }

  /** A constructor that makes true dates: with the same prototype, so that `instanceof` holds both ways. */
  #date(): void {
    const Real = Date;
    const Watching = function (this: unknown, ...args: unknown[]): unknown {
      if (new.target === undefined || args.length === 0)
        check(new.target === undefined ? "Date()" : "new Date()", time, Watching as Anything);
      if (new.target === undefined) return Real();
      return Reflect.construct(Real, args, new.target === (Watching as unknown) ? Real : new.target);
    };
    Object.defineProperties(Watching, Object.getOwnPropertyDescriptors(Real));
    Object.defineProperty(Watching, "now", { value: wrapped(Real.now, "Date.now()", time), configurable: true, writable: true });
    this.#put(globalThis, "Date", Watching);
    this.#put(Real.prototype, "constructor", Watching);
  }

  #put(holder: object, key: string, value: unknown): void {
    const before = Object.getOwnPropertyDescriptor(holder, key);
    if (before?.configurable === false) return;
    Object.defineProperty(holder, key, { value, configurable: true, writable: true, enumerable: before?.enumerable ?? true });
    this.#undo.push(() => {
      // Whoever put another in its place meanwhile takes care of that one.
      if (Object.getOwnPropertyDescriptor(holder, key)?.value !== value) return;
      if (before === undefined) Reflect.deleteProperty(holder, key);
      else Object.defineProperty(holder, key, before);
    });
  }
}

function wrapped(real: Anything, call: string, advice: string): Anything {
  const wrapper = function (this: unknown, ...args: never[]): unknown {
    check(call, advice, wrapper);
    return Reflect.apply(real, this, args);
  };
  // Its name and length, and what is attached to it, such as util.promisify.custom.
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(real)))
    if (key !== "prototype") Object.defineProperty(wrapper, key, descriptor);
  for (const key of Object.getOwnPropertySymbols(real))
    Object.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(real, key) as PropertyDescriptor);
  return wrapper;
}

const patches = new Patches();
