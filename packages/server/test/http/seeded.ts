import type { TestContext } from "node:test";
import { approval, echo, failing, nothing, orchestrated, retrying, type Served } from "./orchestrated.ts";

/** `orchestrated` with an instance in each of some states: `completed`, `failed`, `terminated`, `waiting`, `waiting2`, `retrying`, `removable`; and a batch that is done: `batch`. */
export async function seeded(context: Pick<TestContext, "after">): Promise<Served> {
  const served = await orchestrated(context);
  const { local } = served;
  await local.execute(
    echo,
    { n: 1n, at: new Date(0) },
    { id: "completed", attributes: { color: "red", size: 3, tags: ["a", "b"] }, memo: { by: "me" } },
  );
  await local.execute(failing, "A1", { id: "failed" }).catch(() => undefined);
  for (const id of ["terminated", "waiting", "waiting2"]) await local.start(approval, 1, { id });
  await local.handle("terminated").terminate({ reason: "test" });
  await local.start(retrying, undefined, { id: "retrying" });
  await local.execute(echo, 1, { id: "removable" });
  await local.batches.start({ operation: { type: "wake" }, filter: { workflow: nothing }, id: "batch" });
  await local.handle("batch").result();
  return served;
}
