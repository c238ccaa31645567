/**
 * The contract of a store, as tests: whoever writes a provider runs them against it.
 *
 *     storeContract("my store", () => ({ provider: myStore(), dispose: () => … }));
 *
 * 1. Every case works in a tenant and a group of its own, so that one store serves them all; nothing else may write to it meanwhile.
 */
import assert from "node:assert/strict";
import * as nodeTest from "node:test";
import type { Store, StoreOptions } from "./engine/ports/store.ts";
import { activityRecords } from "./store/contract/activity-records.ts";
import { admissions } from "./store/contract/admissions.ts";
import { children } from "./store/contract/children.ts";
import { deadLetters } from "./store/contract/dead-letters.ts";
import { inbox } from "./store/contract/inbox.ts";
import { closing, lifecycle } from "./store/contract/lifecycle.ts";
import { limits } from "./store/contract/limits.ts";
import { model } from "./store/contract/model.ts";
import { ownership } from "./store/contract/ownership.ts";
import { publications } from "./store/contract/publications.ts";
import { reads } from "./store/contract/reads.ts";
import { runs as wholeRuns } from "./store/contract/runs.ts";
import type { ContractSubject, Suite, TestApi } from "./store/contract/suite.ts";
import { tasks } from "./store/contract/tasks.ts";
import { texts } from "./store/contract/texts.ts";
import { timers } from "./store/contract/timers.ts";
import { turns } from "./store/contract/turns.ts";

export type { ContractSubject, TestApi } from "./store/contract/suite.ts";

/** In the order in which they are tried. */
const parts = {
  lifecycle,
  ownership,
  turns,
  children,
  inbox,
  timers,
  publications,
  deadLetters,
  wholeRuns,
  activityRecords,
  tasks,
  limits,
  admissions,
  reads,
  texts,
  model,
} as const;

export type ContractPart = keyof typeof parts;

const allParts = Object.keys(parts) as readonly ContractPart[];

export type ContractOptions = {
  /** Which parts of the contract; default: all of it. */
  readonly parts?: readonly ContractPart[];
  /** How often properties are tried. Default 40. */
  readonly runs?: number;
  /** The test runner; `node:test` unless given. */
  readonly testApi?: TestApi;
};

/** Declares the tests of the contract for a provider with no data, made by `createProvider`. */
export function storeContract(
  name: string,
  createProvider: () => ContractSubject | Promise<ContractSubject>,
  { runs = 40, testApi = nodeTest, parts: chosen = allParts }: ContractOptions = {},
): void {
  testApi.describe(`the contract of ${name}`, () => {
    let subject: ContractSubject | undefined;
    let opened: Store | undefined;
    testApi.before(async () => {
      subject = await createProvider();
      opened = await subject.provider.open(contractStoreOptions);
    });
    testApi.after(async () => {
      await opened?.close();
      await subject?.dispose?.();
    });
    const suite: Suite = {
      runs,
      test: (title, body) => void testApi.test(title, body),
      store: () => {
        assert.ok(opened, "the store did not open");
        return opened;
      },
    };
    for (const part of chosen) parts[part](suite);
    closing(suite);
  });
}

/** The real clock, and no log. */
export const contractStoreOptions: StoreOptions = { now: () => Date.now(), log: { info: () => {}, warn: () => {} } };
