/**
 * Whether a value has a shape.
 *
 * 1. A plain object matches partially: what it names must match, whatever else is there. So does a `Map`, by its keys. Arrays and sets match as a whole.
 * 2. In a shape, a regular expression matches text and a function is a question; one that throws is answered with no.
 * 3. NaN is NaN, 0 is -0, dates are their times. An instance of a class wants one of the same class; an error its name and message as well.
 * 4. Shapes and values may be cyclic.
 */
import { isDeepStrictEqual } from "node:util";

/** Whether `actual` has the shape that the rules above make of `shape`. */
export function matches(actual: unknown, shape: unknown): boolean {
  return new Matching().matches(actual, shape);
}

class Matching {
  /** Pairs that are being compared: meeting one again on the way says nothing new. */
  readonly #open = new Map<object, Set<object>>();

  matches(actual: unknown, shape: unknown): boolean {
    if (typeof shape === "function") return answers(shape as (value: unknown) => unknown, actual);
    if (shape instanceof RegExp && typeof actual === "string") return actual.search(shape) >= 0;
    if (typeof shape !== "object" || shape === null) return actual === shape || (Number.isNaN(actual) && Number.isNaN(shape));
    if (typeof actual !== "object" || actual === null) return false;
    const open = this.#open.get(shape) ?? new Set();
    if (open.has(actual)) return true;
    this.#open.set(shape, open.add(actual));
    const matched = this.#objects(actual, shape);
    open.delete(actual);
    return matched;
  }

  #objects(actual: object, shape: object): boolean {
    if (shape instanceof Date) return actual instanceof Date && Object.is(actual.getTime(), shape.getTime());
    if (shape instanceof RegExp) return actual instanceof RegExp && String(actual) === String(shape);
    if (shape instanceof URL) return actual instanceof URL && actual.href === shape.href;
    if (ArrayBuffer.isView(shape) || shape instanceof ArrayBuffer) return isDeepStrictEqual(actual, shape);
    if (Array.isArray(shape)) return Array.isArray(actual) && this.#arrays(actual, shape);
    if (shape instanceof Set) return actual instanceof Set && this.#sets([...actual], [...shape]);
    if (shape instanceof Map) return actual instanceof Map && this.#maps(actual, shape);
    if (shape instanceof Error) return this.#errors(actual, shape);
    const prototype: unknown = Object.getPrototypeOf(shape);
    const plain = prototype === Object.prototype || prototype === null;
    return (plain || Object.getPrototypeOf(actual) === prototype) && this.#fields(actual, shape);
  }

  #fields(actual: object, shape: object): boolean {
    return Reflect.ownKeys(shape).every(
      (key) => !Object.prototype.propertyIsEnumerable.call(shape, key) || this.matches(Reflect.get(actual, key), Reflect.get(shape, key)),
    );
  }

  #arrays(actual: readonly unknown[], shape: readonly unknown[]): boolean {
    if (actual.length !== shape.length) return false;
    for (let index = 0; index < shape.length; index++) if (!this.matches(actual[index], shape[index])) return false;
    return true;
  }

  #maps(actual: ReadonlyMap<unknown, unknown>, shape: ReadonlyMap<unknown, unknown>): boolean {
    return [...shape].every(([key, item]) => {
      if (actual.has(key)) return this.matches(actual.get(key), item);
      return typeof key === "object" && [...actual].some(([other, value]) => this.matches(other, key) && this.matches(value, item));
    });
  }

  #errors(actual: object, shape: Error): boolean {
    if (!(actual instanceof Error) || actual.name !== shape.name || actual.message !== shape.message) return false;
    return (shape.cause === undefined || this.matches(actual.cause, shape.cause)) && this.#fields(actual, shape);
  }

  /** Whether each wanted item finds one of its own; one that is taken is left to another when whoever took it finds a different one. */
  #sets(actual: readonly unknown[], wanted: readonly unknown[]): boolean {
    if (actual.length !== wanted.length) return false;
    const takenBy = new Map<number, number>();
    const finds = (want: number, tried: Set<number>): boolean =>
      actual.some((item, at) => {
        if (tried.has(at) || !this.matches(item, wanted[want])) return false;
        tried.add(at);
        const taker = takenBy.get(at);
        if (taker !== undefined && !finds(taker, tried)) return false;
        takenBy.set(at, want);
        return true;
      });
    return wanted.every((_, want) => finds(want, new Set()));
  }
}

function answers(question: (value: unknown) => unknown, value: unknown): boolean {
  try {
    return Boolean(question(value));
  } catch {
    return false;
  }
}
