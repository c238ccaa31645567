/** A store whose every call passes through a function: where calls are counted, refused, delayed or cut off. */
import type { Store, StoreProvider } from "@wovyr/server/internal";

export type StoreMethod = { [K in keyof Store]: Store[K] extends (...args: never[]) => Promise<unknown> ? K : never }[keyof Store];

/** One call of a store method; `run` passes it on. */
export type StoreCall = {
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
};
export type AroundCall = (call: StoreCall, run: () => Promise<unknown>) => Promise<unknown>;

const originals = new WeakMap<Store, Store>();

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
      return (...args: unknown[]) => around({ method: name as StoreMethod, args }, () => value.apply(target, args) as Promise<unknown>);
    },
  });
  originals.set(wrapped, store);
  return wrapped;
}

export function providerAround(provider: StoreProvider, around: AroundCall): StoreProvider {
  return {
    kind: provider.kind,
    shared: provider.shared,
    open: async (options) => storeAround(await provider.open(options), around),
  };
}
