/**
 * What applications asked for in transactions of their own, in whichever database.
 *
 * 1. A request lies where the transaction was, and names the shard that it is for, of whichever database: all are asked. One that does not answer is asked again
 *    with the next look.
 */
import type { AppRequests } from "../../engine/ports/store.ts";
import { askThoseThere } from "./asking.ts";
import type { Database } from "./database.ts";
import { mergePages } from "./merging.ts";
import { positionIn, positionOf } from "./positions.ts";

export function requestsOf(databases: readonly Database[]): AppRequests {
  const count = databases.length;
  return {
    async list(shards, { after = 0, limit }) {
      const pages = await askThoseThere(databases, async (store, { place }) => {
        const page = await store.requests?.list(shards, { after: positionIn(after, place, count), limit });
        return (page ?? []).map((request) => ({ ...request, position: positionOf(request.position, place, count) }));
      });
      return mergePages(pages, (a, b) => a.position - b.position, limit);
    },

    async drop(requests) {
      await Promise.all(
        databases.map(async (database) => {
          const own = requests.filter(({ position }) => position % count === database.place);
          if (own.length > 0) await database.ask(async (store) => store.requests?.drop(own));
        }),
      );
    },
  };
}
