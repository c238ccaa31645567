import { severalDatabases } from "../../src/store/databases/databases.ts";
import { memoryStore } from "../../src/store/memory.ts";
import { storeContract } from "../../src/store-contract.ts";

storeContract("a store over two databases in memory", () => ({ provider: severalDatabases([memoryStore(), memoryStore()]) }), { runs: 10 });
