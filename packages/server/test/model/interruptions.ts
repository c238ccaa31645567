/** What befalls the engine while it takes a step, and a store that refuses what it is to write. */
import { type FlushOutcome, nothingDone, type Store, type StoreProvider } from "@wovyr/server/internal";
import fc from "fast-check";

export const interruptionKinds = [
  "none",
  "none",
  "evicted",
  "crashed before",
  "crashed during",
  "crashed during",
  "commit failed",
  "commit done, answer lost",
  "commit refused",
  "commit held",
  "crashed while commit was held",
] as const;

/** `after`: macrotasks until it happens, where it happens in the middle. */
export type Interruption = { readonly kind: (typeof interruptionKinds)[number]; readonly after: number };

export const interruption: fc.Arbitrary<Interruption> = fc.record({ kind: fc.constantFrom(...interruptionKinds), after: fc.nat(5) });

/** Refuses as many commits as it is told to: as it would when another node had written. */
export class RefusingStore {
  refusals = 0;

  around(inner: StoreProvider): StoreProvider {
    const refuse = (): FlushOutcome | undefined => {
      if (this.refusals === 0) return undefined;
      this.refusals -= 1;
      return nothingDone();
    };
    return {
      kind: inner.kind,
      shared: inner.shared,
      open: async (options) => {
        const store = await inner.open(options);
        return new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (name === "commit") return async (flush: Parameters<Store["commit"]>[0]) => refuse() ?? target.commit(flush);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      },
    };
  }
}
