import { WovyrError } from "@wovyr/sdk";

/** A database that was used by itself holds runs of every shard. */
export function usedAlone(label: string): WovyrError {
  return new WovyrError(
    `the database ${label} has been used by itself and holds runs of all shards, so it cannot become one of several; make the set of empty databases, and bring the runs over by export and import`,
    { code: "STORE_INCOMPATIBLE" },
  );
}
