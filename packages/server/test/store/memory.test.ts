import { memoryStore } from "../../src/store/memory.ts";
import { storeContract } from "../../src/store-contract.ts";

storeContract("the memory store", () => ({ provider: memoryStore() }));
