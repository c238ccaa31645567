/** The places of a store's databases: what is done for each of them by itself is not held up by one that is away. */
import type { Store } from "./ports/store.ts";

export function placesOf({ databases }: Store): readonly number[] {
  return Array.from({ length: databases?.count ?? 1 }, (_, place) => place);
}

/** Those of the shards that are in one database. */
export function shardsAt({ databases }: Store, place: number, shards: readonly number[]): readonly number[] {
  return databases === undefined ? shards : shards.filter((shard) => databases.placeOf(shard) === place);
}
