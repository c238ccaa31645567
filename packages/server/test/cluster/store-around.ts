import type { Store } from "@wovyr/server/internal";

/** A store whose every call passes through a function. */
export function storeAround(
  store: Store,
  around: (name: string, args: readonly unknown[], call: () => Promise<unknown>) => Promise<unknown>,
): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if ((name === "part" || name === "tasks") && value !== undefined) return storeAround(value as Store, around);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => around(String(name), args, () => value.apply(target, args) as Promise<unknown>);
    },
  });
}
