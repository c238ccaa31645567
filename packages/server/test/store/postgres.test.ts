import { postgresStore } from "../../src/store/postgres.ts";
import { storeContract } from "../../src/store-contract.ts";
import { createDatabase } from "./postgres-database.ts";

storeContract("the Postgres store", async () => {
  const database = await createDatabase();
  return { provider: postgresStore(database.url), dispose: () => database.drop() };
});
