import { pgliteStore } from "../../src/store/pglite.ts";
import { storeContract } from "../../src/store-contract.ts";

storeContract("the embedded store", () => ({ provider: pgliteStore("memory://") }));
