import type { TestContext } from "node:test";
import { activity, awaitEvent, event, NonRetryableError, sleep, Type, type Workflow, workflow } from "@wovyr/sdk";
import { type Client, createClient } from "@wovyr/sdk/client";
import { createOrchestrator, memoryStore, type Orchestrator } from "../../src/index.ts";

export const Approved = event("approved", Type.Object({ by: Type.String() }));

export const echo: Workflow<unknown, unknown> = workflow("echo", async function* (input: unknown) {
  return input;
});

export const nothing = workflow("nothing", async function* () {});

const Order = Type.Object({ id: Type.String(), total: Type.Number({ minimum: 0 }) });

export const order = workflow("order", { version: "2", input: Order, output: Type.String() }, async function* ({ id, total }) {
  return `${id}:${total}`;
});

/** Waits until it is approved; its variables change on the way. */
export const approval = workflow("approval", { variables: () => ({ state: "new" }) }, async function* (_: unknown, ctx) {
  ctx.variables.state = "waiting";
  const { by } = yield* awaitEvent(Approved);
  return { by };
});

export class OutOfStock extends Error {
  override readonly name = "OutOfStock";
  readonly sku: string;
  readonly since: Date;
  constructor(sku: string, since: Date) {
    super(`no ${sku} left`);
    this.sku = sku;
    this.since = since;
  }
}

export const failing = workflow("failing", { errors: [OutOfStock] }, async function* (sku: string) {
  yield* sleep(0);
  throw new OutOfStock(sku, new Date(0));
});

export const chained = workflow("chained", { errors: [OutOfStock] }, async function* (sku: string) {
  yield* sleep(0);
  throw new Error("q", { cause: new TypeError("t", { cause: new OutOfStock(sku, new Date(0)) }) });
});

const flaky = activity("flaky", { retry: { maxAttempts: 3, initialDelay: "1 day" } }, async () => {
  throw new Error("not today");
});

export const retrying = workflow("retrying", async function* () {
  return yield* flaky();
});

const broken = activity("broken", async () => {
  throw new NonRetryableError("for good");
});

export const brokenOnce = workflow("broken", async function* () {
  return yield* broken();
});

export type Served = { readonly orchestrator: Orchestrator; readonly url: string; readonly client: Client; readonly local: Client };

/** The real engine on the memory store behind the real server; both are closed with the test. */
export async function orchestrated(context: Pick<TestContext, "after">): Promise<Served> {
  const orchestrator = await createOrchestrator({
    workflows: [echo, nothing, order, approval, failing, chained, retrying, brokenOnce],
    store: memoryStore(),
    log: silent,
  });
  context.after(() => orchestrator.close());
  const url = await orchestrator.listen({ port: 0 });
  return { orchestrator, url, client: createClient({ url }), local: orchestrator.client };
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };
