/** A process of its own on an embedded store: `hold` commits a turn and stays, `close` closes with commits under way, `lock` only takes the lock. */
import { setTimeout as sleep } from "node:timers/promises";
import { commit, firstTurn, scenario } from "../../src/store/contract/scenario.ts";
import { DirectoryLock } from "../../src/store/pglite/directory-lock.ts";
import { pgliteStore } from "../../src/store/pglite.ts";
import { contractStoreOptions } from "../../src/store-contract.ts";

const [mode = "", directory = ""] = process.argv.slice(2);

if (mode === "lock") {
  let answer = "taken";
  try {
    DirectoryLock.acquire(directory);
  } catch (error) {
    answer = (error as { code: string }).code;
  }
  console.log(answer);
  await sleep(60_000);
}

const at = await scenario(await pgliteStore(directory).open(contractStoreOptions), 4);
if (mode === "hold") {
  const turn = firstTurn(at, { tenant: "held" });
  await commit(at, turn);
  console.log(turn.run);
  await sleep(60_000);
}
const underWay = Array.from({ length: 20 }, () => commit(at, firstTurn(at, { tenant: "closed" })));
console.log("closing");
await at.store.close();
await Promise.all(underWay);
