/**
 * What a failed statement means for the one who asked.
 *
 * 1. `again`: the database rolled back because of others; the same statement may be sent again at once, nothing of it is durable.
 * 2. `refused`: the database refuses these values, for ever.
 * 3. `unavailable`: everything else. The outcome is unknown, or the database has to be repaired or reached first; the values are not to blame.
 */
import { StoreUnavailableError } from "../../engine/ports/store.ts";
import { UnstorableTextError } from "../storable.ts";
import { DriverError } from "./driver.ts";

export type FailureClass = "again" | "refused" | "unavailable";

/** Serialization failure, deadlock, lock not available. */
const again = new Set(["40001", "40P01", "55P03"]);
/** Cardinality, data, integrity constraints, program limits. */
const refused = new Set(["21", "22", "23", "54"]);

export function classify(error: unknown): FailureClass {
  if (error instanceof UnstorableTextError) return "refused";
  if (!(error instanceof DriverError) || !error.answered) return "unavailable";
  if (again.has(error.code)) return "again";
  return refused.has(error.code.slice(0, 2)) ? "refused" : "unavailable";
}

export function unavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  const reason = error instanceof DriverError ? `${error.message} (${error.code})` : String(error);
  return new StoreUnavailableError(`the database is unavailable: ${reason}`, {
    cause: error,
  });
}
