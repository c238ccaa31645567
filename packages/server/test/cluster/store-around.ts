import type { Store } from "@wovyr/server/internal";

/** A store whose every call passes through a function. */
export function storeAround(store: Store, around: (call: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => around(() => value.apply(target, args) as Promise<unknown>);
    },
  });
}
