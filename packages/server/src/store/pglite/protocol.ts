import type { SqlValue } from "../sql/driver.ts";

/** What the store's thread asks of the database's thread. */
export type PgliteRequest =
  | { readonly id: number; readonly type: "query"; readonly text: string; readonly params: readonly SqlValue[] }
  | { readonly id: number; readonly type: "script"; readonly text: string }
  | { readonly id: number; readonly type: "close" };

export type PgliteAnswer =
  | { readonly id: number; readonly rows: readonly (readonly SqlValue[])[] }
  | { readonly id: number; readonly message: string; readonly code: string; readonly answered: boolean };

export type PgliteWorkerData = { readonly dataDirectory: string };
