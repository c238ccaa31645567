/**
 * The shape of rich payload text: a JSON array in which values refer to others by index (devalue's format).
 *
 * What `encodePayload` writes is a tree, so everything else is refused before it is revived: references backwards or to one object twice
 * (cycles, and graphs that are small as text and huge when walked), unknown tags, depth, arrays with too many holes.
 */
import { maxDepth, maxHoles } from "./survey.ts";

/** devalue's numbers for undefined, NaN, Infinity, −Infinity and −0; −2 and −7, for holes, are not among them (payload.ts has a tag for those). */
const sentinels: ReadonlySet<unknown> = new Set([-1, -3, -4, -5, -6]);

const viewTags: ReadonlySet<unknown> = new Set([
  "Int8Array",
  "Uint8Array",
  "Uint8ClampedArray",
  "Int16Array",
  "Uint16Array",
  "Float16Array",
  "Int32Array",
  "Uint32Array",
  "Float32Array",
  "Float64Array",
  "BigInt64Array",
  "BigUint64Array",
]);

/** Throws an `Error` that says what is wrong, unless `flat` is what `encodePayload` could have written. */
export function checkGraph(flat: unknown): void {
  if (sentinels.has(flat)) return;
  if (!Array.isArray(flat) || flat.length === 0) throw new Error("it is no list of values");
  new Graph(flat).check();
}

class Graph {
  readonly #values: readonly unknown[];
  readonly #depth: Int32Array;
  #holes = maxHoles;

  constructor(values: readonly unknown[]) {
    this.#values = values;
    this.#depth = new Int32Array(values.length).fill(-1);
    this.#depth[0] = 0;
  }

  check(): void {
    for (let index = 0; index < this.#values.length; index++) {
      const value = this.#values[index];
      if (typeof value !== "object" || value === null) continue;
      require(this.#depth[index] !== -1 || isBigInt(value), `value ${index} belongs to nothing`);
      if (Array.isArray(value)) this.#checkArray(index, value);
      else for (const key of Object.keys(value)) this.#refer(index, (value as Record<string, unknown>)[key]);
    }
  }

  #checkArray(index: number, value: readonly unknown[]): void {
    const head = value[0];
    if (typeof head === "string") this.#checkTagged(index, head, value);
    else for (const item of value) this.#refer(index, item);
  }

  #checkTagged(index: number, tag: string, value: readonly unknown[]): void {
    switch (tag) {
      case "Date":
      case "URL":
      case "BigInt":
      case "ArrayBuffer":
        require(value.length === 2 && typeof value[1] === "string", tag);
        break;
      case "RegExp":
        require(value.length <= 3 && value.slice(1).every((part) => typeof part === "string"), tag);
        break;
      case "Set":
        for (let at = 1; at < value.length; at++) this.#refer(index, value[at]);
        break;
      case "Map":
        require(value.length % 2 === 1, tag);
        for (let at = 1; at < value.length; at++) this.#refer(index, value[at]);
        break;
      case "null":
        require(value.length % 2 === 1, tag);
        for (let at = 2; at < value.length; at += 2) this.#refer(index, value[at]);
        break;
      case "Holes":
        this.#countHoles(this.#values[value[1] as number]);
        require(value.length === 2, tag);
        this.#refer(index, value[1]);
        break;
      case "Error":
      case "Fields":
      case "BareFields":
        require(value.length === 2, tag);
        this.#refer(index, value[1]);
        break;
      default:
        require(viewTags.has(tag) && value.length === 2, `the tag ${JSON.stringify(tag.slice(0, 40))}`);
        this.#refer(index, value[1]);
    }
  }

  #refer(from: number, to: unknown): void {
    if (sentinels.has(to)) return;
    if (!isIndex(to) || to >= this.#values.length) throw new Error(`value ${from} refers to nothing`);
    const target = this.#values[to];
    if (typeof target !== "object" || target === null || isBigInt(target)) return;
    require(to > from && this.#depth[to] === -1, `value ${to} belongs to more than one`);
    const depth = (this.#depth[from] as number) + 1;
    require(depth <= 2 * maxDepth, "the depth");
    this.#depth[to] = depth;
  }

  /** `list` holds the length of an array, then index and value of each item that it has. */
  #countHoles(list: unknown): void {
    const length = Array.isArray(list) ? this.#values[list[0]] : undefined;
    if (!isIndex(length)) throw new Error("an array with holes is not as it was written");
    this.#holes -= length - ((list as readonly unknown[]).length - 1) / 2;
    require(this.#holes >= 0, "the number of holes");
  }
}

function isBigInt(value: object): boolean {
  return Array.isArray(value) && value[0] === "BigInt";
}

function isIndex(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function require(holds: boolean, what: string): void {
  if (!holds) throw new Error(`${what} is not as it was written`);
}
