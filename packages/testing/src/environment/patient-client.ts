/** A client for whose results virtual time jumps. */
import type { Client, Handle } from "@wovyr/sdk/client";

/** Awaits a result while time may jump for it. */
export type Await = <O>(handle: Handle<O>, result: Promise<O>) => Promise<O>;

export function patientClient(client: Client, patiently: Await): Client {
  const patient = <O>(handle: Handle<O>): Handle<O> =>
    Object.freeze({
      ...handle,
      result: (options: Parameters<Handle<O>["result"]>[0]) => patiently(handle, handle.result(options)),
      fork: async (options: Parameters<Handle<O>["fork"]>[0]) => patient(await handle.fork(options)),
      reset: async (options: Parameters<Handle<O>["reset"]>[0]) => patient(await handle.reset(options)),
    });
  return {
    start: async (...args) => patient(await client.start(...args)),
    execute: async (...args) => patient(await client.start(...args)).result(),
    startBatch: async (...args) => {
      const outcomes = await client.startBatch(...args);
      return outcomes.map((outcome) => (outcome.ok ? { ok: true, handle: patient(outcome.handle) } : outcome));
    },
    handle: ((...args: [never, string]) => patient(client.handle(...args))) as Client["handle"],
    publish: (event, ...args) => client.publish(event, ...args),
    deadLetters: client.deadLetters,
    list: (filter) => client.list(filter),
    import: (lines) => client.import(lines),
    batches: client.batches,
    cluster: () => client.cluster(),
    workers: () => client.workers(),
    queues: () => client.queues(),
  };
}
