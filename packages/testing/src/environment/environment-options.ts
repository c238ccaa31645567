/** What may be said to `createTestEnvironment`: checked before anything is opened. */
import { checkOptions, milliseconds } from "@wovyr/sdk/internal";
import { checkDate, checkFlag, checkOneOf, checkSeed, checkWhole, checkWorkflows, refuse, shown } from "../checks.ts";
import type { TestEnvironmentOptions, TestLimits } from "./environment.ts";

const known: readonly (keyof TestEnvironmentOptions)[] = [
  "workflows",
  "fakes",
  "unfaked",
  "strictFakes",
  "clock",
  "seed",
  "store",
  "codec",
  "limits",
  "evictAlways",
  "autoSkip",
  "determinismGuard",
  "lease",
  "patience",
];

/** The least that each limit may be. */
const leastLimits: Readonly<Record<keyof TestLimits, number>> = {
  payload: 1,
  turn: 1,
  history: 1,
  cleanup: 0,
  activities: 1,
  cachedInstances: 0,
  cachedBytes: 0,
};

export function checkEnvironmentOptions(options: TestEnvironmentOptions): void {
  if (options === undefined || options === null) refuse("createTestEnvironment() takes options: { workflows: [order] }");
  checkOptions(options, known, "createTestEnvironment");
  checkWorkflows(options.workflows, "`workflows` of createTestEnvironment");
  const { fakes, store, codec, lease, patience } = options;
  if (fakes !== undefined && !Array.isArray(fakes)) refuse(`\`fakes\` must be a list of what fake(…) returned, not ${shown(fakes)}`);
  checkOneOf(options.unfaked, ["run", "refuse"], "`unfaked`");
  checkFlag(options.strictFakes, "`strictFakes`");
  checkFlag(options.evictAlways, "`evictAlways`");
  checkFlag(options.autoSkip, "`autoSkip`");
  checkOneOf(options.determinismGuard, ["error", "warn", "off"], "`determinismGuard`");
  checkDate(options.clock, "`clock`");
  checkSeed(options.seed, "`seed`");
  if (store !== undefined && typeof store?.open !== "function")
    refuse(`\`store\` must be a store such as memoryStore() or createFaultyStore(…), not ${shown(store)}`);
  if (codec !== undefined && (typeof codec?.name !== "string" || typeof codec.encode !== "function" || typeof codec.decode !== "function"))
    refuse("`codec` must be a payload codec: { name, encode, decode }");
  if (lease !== undefined) milliseconds(lease, "`lease`");
  if (patience !== undefined && milliseconds(patience, "`patience`") < 1) refuse("`patience` must be at least 1 ms");
  checkLimits(options.limits, "`limits`");
}

export function checkLimits(limits: TestLimits | undefined, what: string): void {
  checkOptions(limits, Object.keys(leastLimits), what);
  for (const [name, least] of Object.entries(leastLimits))
    checkWhole(limits?.[name as keyof TestLimits], least, Number.MAX_SAFE_INTEGER, `${what}.${name}`);
}
