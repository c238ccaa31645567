import type { Store, StoreProvider } from "../../engine/ports/store.ts";

/** The parts of `node:test` that the contract uses. */
export type TestApi = {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => Promise<void>): unknown;
  before(body: () => Promise<void>): unknown;
  after(body: () => Promise<void>): unknown;
};

export type Suite = {
  test(name: string, body: () => Promise<void>): void;
  /** The store under test, open since before the first test. */
  store(): Store;
  /** How often properties are tried. */
  readonly runs: number;
};

export type ContractSubject = {
  readonly provider: StoreProvider;
  /** Frees what the provider holds; called after the last test. */
  dispose?(): Promise<void>;
};
