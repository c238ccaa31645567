/** What the process of an engine is told, and what it tells. */
import type { Failure, Value } from "./measure-engine.ts";
import type { Sizes } from "./measures.ts";

export type Task =
  | { readonly kind: "measure"; readonly sizes: Sizes; readonly postmaster: number | undefined }
  /** Start a long run, and stop at its last step without ending it. */
  | { readonly kind: "begin"; readonly steps: number }
  /** Find the long run, and tell when its last step is reached. */
  | { readonly kind: "recover" };

export type Order = { readonly engine: string; readonly database: string; readonly directory: string; readonly task: Task };

export type Report =
  | { readonly kind: "result"; readonly result: Value | Failure }
  /** The last step began so many milliseconds after the start of the process, and of the engine in it. */
  | { readonly kind: "lastStep"; readonly sinceProcess: number; readonly sinceEngine: number }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly failure: string };
