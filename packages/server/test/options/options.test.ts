/** Options that nobody could mean are refused where they are given, with what would be right. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WovyrError } from "@wovyr/sdk";
import { createOrchestrator, fair, memoryStore, type OrchestratorOptions, postgresStore } from "../../src/index.ts";
import { transactionClient } from "../../src/transaction.ts";

const refused = async (make: () => unknown, code: string, ...said: readonly RegExp[]) =>
  assert.rejects(
    async () => make(),
    (error: WovyrError) => {
      assert.equal(error.code, code, error.message);
      for (const pattern of said) assert.match(error.message, pattern);
      return true;
    },
  );

test("options of an orchestrator that nothing would work with", async () => {
  const wrong = (options: object, ...said: readonly RegExp[]) => {
    const all = { workflows: [], store: memoryStore(), ...options } as OrchestratorOptions;
    return refused(() => createOrchestrator(all), "INVALID_OPTION", ...said);
  };
  for (const lease of [0, "1ms", "10 days"]) await wrong({ lease }, /lease must be from 250ms to 10 minutes, not/);
  await wrong({ publicationRetention: 0 }, /publicationRetention must be from 1s/);
  await wrong({ codec: {} }, /`codec` of createOrchestrator must be a payload codec/);
  await wrong({ cluster: { url: "http://user:secret@host/?q=1" } }, /cluster.url .* without a user or a password and a query$/);
  for (const group of ["", "a b", "x".repeat(300)])
    await refused(
      () => createOrchestrator({ workflows: [], store: memoryStore(), group }),
      "INVALID_NAME",
      /the name of the group must be 1 to 255/,
    );
});

test("where nobody can listen, and where not everybody should", async () => {
  const orchestrator = await createOrchestrator({ workflows: [], store: memoryStore() });
  const wrong = (options: object, code: string, ...said: readonly RegExp[]) => refused(() => orchestrator.listen(options), code, ...said);
  for (const port of ["8080", -1, 65_536, Number.NaN, null])
    await wrong({ port }, "INVALID_OPTION", /^port of listen must be a whole number/);
  for (const host of ["", 5, null]) await wrong({ host }, "INVALID_OPTION", /^host of listen must be an address/);
  await wrong({ allowUnauthenticated: "no" }, "INVALID_OPTION", /^allowUnauthenticated of listen must be true or false/);
  await wrong({ host: "0.0.0.0", port: 0 }, "INSECURE_LISTEN", /^Listening on 0\.0\.0\.0 would let anyone/);
  // None of it was half done.
  assert.match(await orchestrator.listen({ port: 0 }), /^http:\/\/127\.0\.0\.1:\d+$/);
  await orchestrator.close();
});

test("options of stores, strategies and transactions", async () => {
  const url = "postgres://user@127.0.0.1:1/x";
  const wrong = (make: () => unknown, ...said: readonly RegExp[]) => refused(make, "INVALID_OPTION", ...said);
  for (const option of ["writeConnections", "readConnections", "statementDeadline"])
    for (const value of [0, -1, 1.5, "3", 1e12])
      await wrong(
        () => postgresStore(url, { [option]: value }),
        new RegExp(`${option} of postgresStore must be a whole number of at least 1`),
      );
  await wrong(() => postgresStore(url, { prepared: false } as object), /postgresStore has no option "prepared"; it takes prepare,/);
  await wrong(() => postgresStore(url, { prepare: "no" } as object), /prepare of postgresStore must be true or false, not "no"/);
  await wrong(() => postgresStore(url, { listen: 5 } as object), /listen of postgresStore, unless it is a URL, must be true or false/);
  await wrong(() => postgresStore(url, { listen: "bogus" }), /listen of postgresStore looks like postgres:/);
  await wrong(() => postgresStore([]), /takes a URL, or a list/);
  await wrong(() => memoryStore({ share: true } as object), /memoryStore has no option "share"; it takes shared/);
  await wrong(() => fair({ by: "x" } as object), /by of fair\(\) must be a function/);
  await wrong(() => fair({ within: "x" } as object), /scheduling must be a strategy/);
  await wrong(() => transactionClient({ codec: {} } as object), /`codec` of transactionClient must be/);
  await refused(() => transactionClient({ group: "" }), "INVALID_NAME", /the name of the group/);
});
