/** Opens several databases as one store. */
import { WovyrError } from "@wovyr/sdk";
import type { StorePart } from "../../engine/ports/databases.ts";
import { type Store, type StoreOptions, type StoreProvider, StoreUnavailableError } from "../../engine/ports/store.ts";
import { Database } from "./database.ts";
import { checkMember, joinSet } from "./set.ts";
import { SeveralDatabases } from "./several-databases.ts";

/**
 * Spreads shards over the databases of several stores.
 *
 * 1. Their number and order are fixed when they are opened first.
 * 2. One that cannot be reached is opened when it can, unless none can, or the set is still to be made.
 */
export function severalDatabases(providers: readonly StoreProvider[]): StoreProvider {
  const [first] = providers;
  if (first === undefined) throw new WovyrError("a store needs at least one database", { code: "INVALID_OPTION" });
  return {
    kind: first.kind,
    shared: providers.every(({ shared }) => shared),
    open: (options) => open(providers, options),
  };
}

async function open(providers: readonly StoreProvider[], options: StoreOptions): Promise<Store> {
  let back = (_database: Database) => {};
  const databases = providers.map(
    ({ label, kind }, place) => new Database(place, label ?? `${kind} ${place + 1}`, (database) => back(database)),
  );
  try {
    const opened = await Promise.allSettled(databases.map((database) => openOne(database, providers, options)));
    const failures = opened.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
    const refusal = failures.find((error) => !(error instanceof StoreUnavailableError));
    if (refusal !== undefined || failures.length === databases.length) throw refusal ?? failures[0];
    const id = await joinSet(databases);
    for (const { store, label } of databases)
      if (store === undefined) options.log.warn(`the database ${label} cannot be reached; its shards wait, those of the others do not`);
    const openLate = async (database: Database) => {
      const check = async (part: StorePart) => checkMember(database, (await part.inspect()).member, id, databases.length);
      try {
        await openOne(database, providers, options, check);
      } catch (error) {
        if (error instanceof StoreUnavailableError) throw error;
        // The others work already.
        options.log.warn(`the database ${database.label} cannot be used`, { error });
        throw database.unavailable((error as Error).message);
      }
    };
    const store = new SeveralDatabases(providers[0]?.kind ?? "", databases, options, openLate);
    back = (database) => store.back(database);
    return store;
  } catch (error) {
    await Promise.all(databases.map(({ store }) => store?.close()));
    throw error;
  }
}

const isPart = (store: Store): store is Store & { readonly part: StorePart } => store.part !== undefined;

async function openOne(
  database: Database,
  providers: readonly StoreProvider[],
  options: StoreOptions,
  check: (part: StorePart) => Promise<void> = async () => {},
): Promise<void> {
  const provider = providers[database.place] as StoreProvider;
  const store = await provider.open(options);
  try {
    if (!isPart(store))
      throw new WovyrError(`a store of kind ${provider.kind} cannot be one of several databases`, { code: "INVALID_OPTION" });
    await check(store.part);
    database.opened(store);
  } catch (error) {
    await store.close();
    throw error;
  }
}
