/** What may be said to `createTestEnvironment`: checked before anything is opened. */
import type { AnyWorkflow, Classifier, Duration, RetryPolicy } from "@wovyr/sdk";
import {
  checkClassifier,
  checkCodec,
  checkOptions,
  defaultLimits,
  milliseconds,
  type PayloadCodec,
  resolveRetry,
} from "@wovyr/sdk/internal";
import {
  checkStrategy,
  type DeterminismGuard,
  defaultAdmissionLimits,
  defaultJournalLimits,
  type EngineLimits,
  type RetentionOptions,
  resolveTenantLimits,
  retentionTimes,
  type SchedulingStrategy,
  type StoreProvider,
  type TenantLimitOptions,
} from "@wovyr/server/internal";
import { checkDate, checkFlag, checkOneOf, checkSeed, checkWhole, checkWorkflows, refuse, shown } from "../checks.ts";
import type { Fake } from "../fakes/fake.ts";

export type TestLimits = Partial<EngineLimits["execution"]> & {
  /** Activities that run at once. */
  readonly activities?: number;
  /** Idle instances that are kept in memory; 0 evicts after every turn. */
  readonly cachedInstances?: number;
  readonly cachedBytes?: number;
};

export type TestEnvironmentOptions = {
  readonly workflows: readonly AnyWorkflow[];
  /** Stand-ins for activities, children and events. */
  readonly fakes?: readonly Fake[];
  /** What happens to activities without a fake: `run` (default) or `refuse`, which fails them. */
  readonly unfaked?: "run" | "refuse";
  /**
   * What happens to activities of task queues: `run` (default), as if a worker were there; or `workers`, which leaves them to whoever asks for them by
   * `env.tasks`.
   */
  readonly queues?: "run" | "workers";
  /** Where the clock begins; default 2026-01-01T00:00:00Z. */
  readonly clock?: Date;
  /** Default 1. */
  readonly seed?: number;
  /** Default: a memory store of its own. */
  readonly store?: StoreProvider;
  readonly codec?: PayloadCodec;
  /** As those of `createOrchestrator`. */
  readonly retry?: RetryPolicy;
  readonly classify?: Classifier;
  readonly scheduling?: SchedulingStrategy;
  readonly tenantLimits?: TenantLimitOptions;
  readonly limits?: TestLimits;
  /** Every turn replays the run from its history. */
  readonly evictAlways?: boolean;
  /** Default true: time jumps by itself when nothing else can happen and somebody waits. */
  readonly autoSkip?: boolean;
  /**
   * What happens when workflow code asks for the time of day, chance, a timer or the network: `error` (default) throws at the call, `warn` leaves a line in
   * `logs`. With `error`, an effect whose call stands alone as a statement, its `yield*` forgotten, rejects everybody who waits, too.
   */
  readonly determinismGuard?: DeterminismGuard;
  /** Lease on the shards; default: for ever, so that its renewals need no time. */
  readonly lease?: Duration;
  /** How long publications with a key are kept, in virtual time; default "7 days". */
  readonly publicationRetention?: Duration;
  /** How long closed runs are kept, as `createOrchestrator` takes it; default: for ever. */
  readonly retention?: RetentionOptions;
  /** Real time that an attempt of an activity, a call of the store or a codec may take while somebody waits; then those who wait are rejected. Default "1m". */
  readonly patience?: Duration;
  /** A fake that nobody ever called rejects the disposal: its name may be misspelt. Default false. */
  readonly strictFakes?: boolean;
};

const known: readonly (keyof TestEnvironmentOptions)[] = [
  "workflows",
  "fakes",
  "unfaked",
  "strictFakes",
  "queues",
  "clock",
  "seed",
  "store",
  "codec",
  "retry",
  "classify",
  "scheduling",
  "tenantLimits",
  "limits",
  "evictAlways",
  "autoSkip",
  "determinismGuard",
  "lease",
  "publicationRetention",
  "retention",
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
  const { fakes, store, codec, lease, patience, publicationRetention } = options;
  if (fakes !== undefined && !Array.isArray(fakes)) refuse(`\`fakes\` must be a list of what fake(…) returned, not ${shown(fakes)}`);
  checkOneOf(options.unfaked, ["run", "refuse"], "`unfaked`");
  checkOneOf(options.queues, ["run", "workers"], "`queues`");
  checkFlag(options.strictFakes, "`strictFakes`");
  checkFlag(options.evictAlways, "`evictAlways`");
  checkFlag(options.autoSkip, "`autoSkip`");
  checkOneOf(options.determinismGuard, ["error", "warn", "off"], "`determinismGuard`");
  checkDate(options.clock, "`clock`");
  checkSeed(options.seed, "`seed`");
  if (store !== undefined && typeof store?.open !== "function")
    refuse(`\`store\` must be a store such as memoryStore() or createFaultyStore(…), not ${shown(store)}`);
  checkCodec(codec, "createTestEnvironment");
  resolveRetry(options.retry);
  checkClassifier(options.classify, "createTestEnvironment");
  if (options.scheduling !== undefined) checkStrategy(options.scheduling);
  if (options.tenantLimits !== undefined) resolveTenantLimits(options.tenantLimits);
  if (lease !== undefined) milliseconds(lease, "`lease`");
  if (publicationRetention !== undefined) milliseconds(publicationRetention, "`publicationRetention`");
  if (options.retention !== undefined) retentionTimes(options.retention);
  if (patience !== undefined && milliseconds(patience, "`patience`") < 1) refuse("`patience` must be at least 1 ms");
  checkLimits(options.limits, "`limits`");
}

export function checkLimits(limits: TestLimits | undefined, what: string): void {
  checkOptions(limits, Object.keys(leastLimits), what);
  for (const [name, least] of Object.entries(leastLimits))
    checkWhole(limits?.[name as keyof TestLimits], least, Number.MAX_SAFE_INTEGER, `${what}.${name}`);
}

/** The limits of an engine, with the usual ones where none are given. */
export function limitsOf({ limits = {}, evictAlways = false }: TestEnvironmentOptions): EngineLimits {
  const { activities = 1_000, cachedInstances = 50_000, cachedBytes = 256 * 1024 * 1024, ...execution } = limits;
  return {
    execution: { ...defaultLimits, ...execution },
    cache: { instances: evictAlways ? 0 : cachedInstances, bytes: cachedBytes },
    journal: defaultJournalLimits,
    activities,
    admission: defaultAdmissionLimits,
    waiters: 100_000,
  };
}
