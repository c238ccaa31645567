/** A family of rows: measured together, in a process of its own. */
import type { Floor } from "./floor.ts";
import type { Row } from "./row.ts";

export type FamilyContext = {
  /** The short version. */
  readonly quick: boolean;
  /** Empty databases of this family's own, as many as it asked for. */
  readonly databases: readonly string[];
  /** The database server's first process, when its processor time can be read. */
  readonly postmaster: number | undefined;
  /** Seconds of one run of a throughput row. */
  readonly seconds: number;
};

export type Family = {
  readonly name: string;
  readonly title: string;
  readonly databases: number;
  /** Seconds after which the family is ended. */
  readonly deadline: number;
  /** Arguments for Node. */
  readonly node?: readonly string[];
  readonly run: (context: FamilyContext) => Promise<readonly Row[]>;
};

/** What the family's process reports. */
export type FamilyReport = {
  readonly rows: readonly Row[];
  /** The most memory that its process held, in bytes. */
  readonly peakRss: number;
};

export type FamilyResult = FamilyReport & { readonly title: string; readonly floor: Floor };
