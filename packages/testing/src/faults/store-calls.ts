/**
 * A store whose every call passes through a function: where calls are counted, refused, delayed or cut off.
 *
 * 1. Whoever hears commits hears of each that the store has done, whatever becomes of its answer on the way up.
 */
import type { Flush, FlushOutcome, Store, StoreProvider } from "@wovyr/server/internal";

export type StoreMethod = { [K in keyof Store]-?: Store[K] extends (...args: never[]) => Promise<unknown> ? K : never }[keyof Store];

const methods: Readonly<Record<StoreMethod, true>> = {
  beat: true,
  leave: true,
  commit: true,
  post: true,
  drop: true,
  publish: true,
  expirePublications: true,
  importRun: true,
  deleteRuns: true,
  listClosedBefore: true,
  addDeadLetter: true,
  listDeadLetters: true,
  getDeadLetter: true,
  dropDeadLetters: true,
  saveHeartbeats: true,
  readHeartbeats: true,
  dropHeartbeats: true,
  expireHeartbeats: true,
  saveStepOutcome: true,
  readStepOutcomes: true,
  expireStepOutcomes: true,
  findInstance: true,
  getInstance: true,
  findStartKey: true,
  loadInstances: true,
  readHistory: true,
  readLastTurn: true,
  listInstances: true,
  listRunnable: true,
  listInbox: true,
  readInbox: true,
  listTimers: true,
  listStrikes: true,
  clearStrikes: true,
  exchangePermits: true,
  releasePermits: true,
  listPermitOwners: true,
  takeTokens: true,
  admit: true,
  dropStartKey: true,
  expireLimits: true,
  expireStartKeys: true,
  ping: true,
  close: true,
};

export const storeMethods: readonly string[] = Object.keys(methods);

/** One call of a store method; `run` passes it on. */
export type StoreCall = {
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
};
export type AroundCall = (call: StoreCall, run: () => Promise<unknown>) => Promise<unknown>;

const originals = new WeakMap<Store, Store>();

type Hearer = (flush: Flush, outcome: FlushOutcome) => void;
const hearers = new WeakMap<Store, Set<Hearer>>();

/** Tells every commit that the store below every wrapper has done; returns what ends that. */
export function hearCommits(store: Store, hear: Hearer): () => void {
  const bare = bareStore(store);
  const all = hearers.get(bare) ?? new Set();
  hearers.set(bare, all.add(hear));
  return () => void all.delete(hear);
}

/** The store below every wrapper. */
export function bareStore(store: Store): Store {
  const inner = originals.get(store);
  return inner === undefined ? store : bareStore(inner);
}

export function storeAround(store: Store, around: AroundCall): Store {
  const wrapped = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const call = (args: unknown[]) => value.apply(target, args) as Promise<unknown>;
      const run = name === "commit" && !originals.has(target) ? (args: unknown[]) => heard(target, args, call) : call;
      return (...args: unknown[]) => around({ method: name as StoreMethod, args }, () => run(args));
    },
  });
  originals.set(wrapped, store);
  return wrapped;
}

async function heard(store: Store, args: unknown[], commit: (args: unknown[]) => Promise<unknown>): Promise<unknown> {
  const outcome = await commit(args);
  for (const hear of hearers.get(store) ?? []) hear(args[0] as Flush, outcome as FlushOutcome);
  return outcome;
}

export function providerAround(provider: StoreProvider, around: AroundCall): StoreProvider {
  return {
    kind: provider.kind,
    shared: provider.shared,
    open: async (options) => storeAround(await provider.open(options), around),
  };
}
