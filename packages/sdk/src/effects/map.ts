import { WovyrError } from "../model/errors.ts";
import { checkOptions, wholeNumber } from "../model/option.ts";
import { type Branch, type CallSite, captureSite, Effect, type ResultOf, type Settled } from "./effect.ts";

export type Tolerance = { readonly count?: number; readonly percent?: number };

/** Runs a branch for every item, at most `concurrency` at a time; results come in item order. */
export class MapEffect<out T> extends Effect<T> {
  readonly kind = "map";
  readonly items: readonly unknown[];
  readonly fn: (item: unknown, index: number) => Branch;
  /** Undefined: all at once. */
  readonly concurrency: number | undefined;
  /** With this or `tolerateFailures` the results are `Settled`. */
  readonly minSuccess: number | undefined;
  readonly tolerateFailures: Tolerance | undefined;

  constructor(
    items: readonly unknown[],
    fn: (item: unknown, index: number) => Branch,
    options: {
      concurrency?: number | undefined;
      minSuccess?: number | undefined;
      tolerateFailures?: Tolerance | undefined;
    } = {},
    site: CallSite = captureSite(MapEffect),
  ) {
    super(site);
    this.items = items;
    this.fn = fn;
    this.concurrency = options.concurrency;
    this.minSuccess = options.minSuccess;
    this.tolerateFailures = options.tolerateFailures;
  }
}

export type MapOptions = { readonly concurrency?: number | undefined };
export type TolerantMapOptions = MapOptions & {
  /** Fails unless at least so many branches succeed. */
  readonly minSuccess?: number | undefined;
  /** Fails when more branches fail than this number, or than this share of the items. */
  readonly tolerateFailures?: number | `${number}%` | undefined;
};

/** Runs a branch for every item; the first failure cancels the others, unless failures are tolerated. */
export function map<A, B extends Branch>(
  items: readonly A[],
  fn: (item: A, index: number) => B,
  options?: MapOptions,
): MapEffect<ResultOf<B>[]>;
export function map<A, B extends Branch>(
  items: readonly A[],
  fn: (item: A, index: number) => B,
  options: TolerantMapOptions,
): MapEffect<Settled<ResultOf<B>>[]>;
export function map(
  items: readonly unknown[],
  fn: (item: never, index: number) => Branch,
  options: TolerantMapOptions = {},
): MapEffect<unknown> {
  if (!Array.isArray(items)) throw new WovyrError("map takes an array of items (spread others: `[...set]`)", { code: "INVALID_OPTION" });
  if (typeof fn !== "function") throw new WovyrError("map takes a function that makes a branch of an item", { code: "INVALID_OPTION" });
  checkOptions(options, ["concurrency", "minSuccess", "tolerateFailures"], "map");
  const { concurrency, minSuccess, tolerateFailures } = options;
  return new MapEffect(
    Object.freeze([...items]),
    fn as (item: unknown, index: number) => Branch,
    {
      concurrency: concurrency === undefined ? undefined : wholeNumber(concurrency, 1, "map: concurrency"),
      minSuccess: minSuccess === undefined ? undefined : wholeNumber(minSuccess, 0, "map: minSuccess"),
      tolerateFailures: tolerateFailures === undefined ? undefined : toleranceOf(tolerateFailures),
    },
    captureSite(map),
  );
}

const share = /^(\d+(?:\.\d+)?)%$/;

function toleranceOf(given: number | string): Tolerance {
  if (typeof given === "number") return { count: wholeNumber(given, 0, "map: tolerateFailures") };
  const percent = Number(share.exec(given)?.[1] ?? Number.NaN);
  if (percent <= 100) return { percent };
  throw new WovyrError('map: tolerateFailures must be a number or a share such as "10%"', { code: "INVALID_OPTION" });
}
