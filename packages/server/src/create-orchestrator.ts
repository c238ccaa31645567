/** Puts an orchestrator together: the one file that knows the engine and every adapter around it. */
import { hostname } from "node:os";
import { type AnyWorkflow, ApiError, type Classifier, type RetryPolicy, WovyrError } from "@wovyr/sdk";
import type { Client } from "@wovyr/sdk/client";
import {
  baseUrl,
  checkClassifier,
  checkCodec,
  checkFlag,
  checkName,
  checkOptions,
  clientOver,
  type Duration,
  defaultLimits,
  milliseconds,
  millisecondsWithin,
  type PayloadCodec,
  rememberSites,
  resolveRetry,
  wholeNumber,
} from "@wovyr/sdk/internal";
import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import { nanoid } from "nanoid";
import { defaultAdmissionLimits } from "./engine/admission.ts";
import type { EngineLimits } from "./engine/engine.ts";
import { EngineHost } from "./engine/engine-host.ts";
import { defaultJournalLimits } from "./engine/journal.ts";
import { resolveTenantLimits, type TenantLimitOptions } from "./engine/limits/tenant-limits.ts";
import { inProcess } from "./engine/ports/activity-executor.ts";
import type { EngineLog } from "./engine/ports/log.ts";
import type { StoreProvider } from "./engine/ports/store.ts";
import { defaultPublicationRetention } from "./engine/publishing.ts";
import { Registry } from "./engine/registry.ts";
import { type RetentionOptions, retentionTimes } from "./engine/removal.ts";
import { checkStrategy, type SchedulingStrategy } from "./engine/scheduling/strategy.ts";
import { Drain } from "./http/drain.ts";
import { HttpPeers } from "./http/peers.ts";
import { consoleLog } from "./platform/console-log.ts";
import { type DeterminismGuard, determinismGuard } from "./platform/determinism-guard.ts";
import { ownAddress } from "./platform/own-address.ts";
import { deadProcesses, processName } from "./platform/process-name.ts";
import { heapIsShort, systemClock, systemLoop, systemRandom } from "./platform/system.ts";
import { startWatchdog, type Watchdog } from "./platform/watchdog.ts";
import { pgliteStore } from "./store/pglite.ts";

export type OrchestratorOptions = {
  readonly workflows: readonly AnyWorkflow[];
  /** Default: `pgliteStore(".wovyr")`. */
  readonly store?: StoreProvider | undefined;
  /** Orchestrators of one group host the same workflows; default `"default"`. */
  readonly group?: string | undefined;
  /**
   * Which release of your code this is, such as "2026-11-30.2" or "1.10.0": while several run side by side, later ones are given free shards first. Numbers in
   * it are compared by their size. Default: none.
   */
  readonly release?: string | undefined;
  /** Transforms payloads on their way to the store and back: compression, encryption. */
  readonly codec?: PayloadCodec | undefined;
  /** How activities are tried again, for what neither their workflow nor they themselves say. */
  readonly retry?: RetryPolicy | undefined;
  /** Says of what kind failures of activities are; an activity's own `classify` is asked first, and undefined leaves it to what the error shows. */
  readonly classify?: Classifier | undefined;
  /** Task queues whose activities this process runs itself, like those without a queue; default: none, workers take them. */
  readonly queues?: readonly string[] | undefined;
  /** Who is next of the attempts that wait for a place, or for a limit; default `fifo()`. */
  readonly scheduling?: SchedulingStrategy | undefined;
  /** What each tenant may do, over all nodes. */
  readonly tenantLimits?: TenantLimitOptions | undefined;
  /** Default: lines on standard error, from `warn` up. */
  readonly log?: EngineLog | undefined;
  /** How long a node is taken to live without saying so, and so how long a takeover from a dead machine takes: 250 ms to 10 minutes, default 10 s. */
  readonly lease?: Duration | undefined;
  /** How long an event that was published is kept for waits that are opened later, and its idempotency key with it: 1 s or more, default 7 days. */
  readonly publicationRetention?: Duration | undefined;
  /** How long `close()` waits for activities that run; default 10 s. */
  readonly shutdownGrace?: Duration | undefined;
  /** How long a turn may run without yielding before the process is ended; default 10 s, from 100 ms to an hour; false: for ever. */
  readonly turnTimeout?: Duration | false | undefined;
  /**
   * Whether every effect remembers the line that made it, for the whole process; it takes about a tenth of the throughput. Without, a mistake's line is
   * found by running the history once more. Default: unless NODE_ENV is "production".
   */
  readonly rememberLines?: boolean | undefined;
  /**
   * What happens when workflow code asks for the time of day, chance, a timer or the network: `"warn"` tells each line once, `"error"` throws at the call.
   * Default: `"warn"`, and `"off"` when NODE_ENV is "production".
   */
  readonly determinismGuard?: DeterminismGuard | undefined;
  /**
   * How long closed runs are kept: one time for all, or `{ Completed: "7 days", default: "90 days" }`, by status. They are removed within ten minutes after.
   * Default: for ever.
   */
  readonly retention?: RetentionOptions | undefined;
  /** How the orchestrators of a group, that share its work, reach each other. */
  readonly cluster?:
    | {
        /**
         * Where the others reach this one's API, with the prefix that it is mounted under. Default: the environment's `WOVYR_CLUSTER_URL`, else the address
         * that it listens on.
         */
        readonly url?: string | URL | undefined;
        /** The same for all, and known to nobody else: a text of 16 characters or more. Default: the environment's `WOVYR_CLUSTER_SECRET`. */
        readonly secret?: string | undefined;
      }
    | undefined;
  readonly limits?:
    | {
        /** Activities that run in this process at once; default 1,000. */
        readonly activities?: number | undefined;
        /** Activities that wait for their place: above it new starts are refused; default 100,000. */
        readonly waitingActivities?: number | undefined;
        /** How long what a run does may wait to be written, in milliseconds: above it new starts are refused; default 2,000. */
        readonly commitDelay?: number | undefined;
        /** Bytes of one value; default 2 MiB. */
        readonly payload?: number | undefined;
        /** Events of one run; default 100,000. */
        readonly history?: number | undefined;
        /** Idle instances that are kept in memory, while the heap has room; default 50,000. */
        readonly cachedInstances?: number | undefined;
        /** Their estimated bytes; default 256 MiB. */
        readonly cachedBytes?: number | undefined;
      }
    | undefined;
};

export type ListenOptions = {
  /** Default 7420; 0 takes a free one. */
  readonly port?: number | undefined;
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Anyone who reaches the port may do anything: needed by name for an address beyond this machine. */
  readonly allowUnauthenticated?: boolean | undefined;
};

export interface Orchestrator extends AsyncDisposable {
  /** A client in this process, without HTTP. */
  readonly client: Client;
  /** The Fastify instance that serves the API. */
  readonly http: FastifyInstance;
  /** The API as a plugin for a Fastify instance of your own. */
  readonly plugin: FastifyPluginAsync;
  /** Whether it can take work now. */
  readonly ready: boolean;
  /** Serves the API; resolves with its URL. */
  listen(options?: ListenOptions): Promise<string>;
  /** Lets running work end, hands over the rest, loses nothing. */
  close(): Promise<void>;
}

const orchestratorOptions = [
  "workflows",
  "store",
  "group",
  "release",
  "codec",
  "retry",
  "classify",
  "queues",
  "scheduling",
  "tenantLimits",
  "log",
  "lease",
  "publicationRetention",
  "shutdownGrace",
  "turnTimeout",
  "rememberLines",
  "determinismGuard",
  "retention",
  "cluster",
  "limits",
];
const defaultCaps = {
  activities: 1_000,
  waitingActivities: defaultAdmissionLimits.waitingActivities,
  commitDelay: defaultAdmissionLimits.commitDelay,
  payload: defaultLimits.payload,
  history: defaultLimits.history,
  cachedInstances: 50_000,
  cachedBytes: 256 * 1024 * 1024,
};
/** A node tells of itself three times in it, and whoever waits for a dead one waits so long. */
const leaseBounds = ["250ms", "10 minutes"] as const;
const turnBounds = ["100ms", "1 hour"] as const;
const publicationBounds = ["1s", "36525 days"] as const;
const defaultHost = "127.0.0.1";
const defaultPort = 7420;
const shortestSecret = 16;
/** Requests under way end in milliseconds, but for those that wait for a store that is away. */
const longestDrain = 1_000;
const defaultTenant = "default";
const shardsOfGroup = 256;
const loopback = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

/** Hosts workflows; resolves when it takes work. A store that cannot be reached is waited for in the background, with `ready` false. */
export async function createOrchestrator(options: OrchestratorOptions): Promise<Orchestrator> {
  checkOptions(options, orchestratorOptions, "createOrchestrator");
  checkOptions(options.limits, Object.keys(defaultCaps), "createOrchestrator's limits");
  for (const [name, value] of Object.entries(options.limits ?? {})) if (value !== undefined) wholeNumber(value, 1, `limits.${name}`);
  if (options.store !== undefined && typeof options.store?.open !== "function")
    throw new WovyrError("store must be what memoryStore(), pgliteStore() or postgresStore() returned", { code: "INVALID_OPTION" });
  resolveRetry(options.retry);
  checkClassifier(options.classify, "createOrchestrator");
  checkCodec(options.codec, "createOrchestrator");
  rememberSites(options.rememberLines ?? process.env.NODE_ENV !== "production");
  const registry = new Registry(definitionsOf(options.workflows));
  const log = options.log ?? consoleLog("warn");
  const provider = options.store ?? pgliteStore();
  const grace = milliseconds(options.shutdownGrace ?? "10s", "shutdownGrace");
  const turnTimeout =
    options.turnTimeout === false ? undefined : millisecondsWithin(options.turnTimeout ?? "10s", turnBounds, "turnTimeout");
  const guard = determinismGuard(options.determinismGuard ?? (process.env.NODE_ENV === "production" ? "off" : "warn"), log);
  let watchdog: Watchdog | undefined;
  const { secret, url: configured } = clusterOptions(options.cluster);
  const machine = hostname();
  const node = processName(machine, process.pid, nanoid(8));
  let address = configured;
  const host = new EngineHost({
    provider,
    registry,
    log,
    clock: systemClock,
    random: systemRandom,
    loop: systemLoop,
    executor: inProcess,
    localQueues: queuesOf(options.queues),
    codec: options.codec,
    retry: options.retry,
    classify: options.classify,
    limits: limitsOf(options),
    scheduling: options.scheduling && checkStrategy(options.scheduling),
    tenantLimits: options.tenantLimits && resolveTenantLimits(options.tenantLimits),
    retention: options.retention === undefined ? undefined : retentionTimes(options.retention),
    guard,
    memoryIsShort: heapIsShort,
    group: checkName(options.group ?? "default", "the name of the group"),
    release: options.release === undefined ? undefined : checkName(options.release, "release"),
    shards: shardsOfGroup,
    node,
    url: () => address,
    peers: new HttpPeers({ secret, host: machine }),
    lease: millisecondsWithin(options.lease ?? "10s", leaseBounds, "lease"),
    publicationRetention: millisecondsWithin(
      options.publicationRetention ?? defaultPublicationRetention,
      publicationBounds,
      "publicationRetention",
    ),
    deadOwners: (owners) => deadProcesses(owners, machine),
    turnBegan: (run, tail) => watchdog?.began(run, tail),
    opened: (store) => {
      if (turnTimeout !== undefined) watchdog ??= startWatchdog(store.strikes, turnTimeout);
    },
  });
  try {
    await host.start();
  } catch (error) {
    await watchdog?.stop();
    guard?.dispose();
    throw error;
  }
  const operations = (tenant: string) => host.operations(tenant);
  const cluster = {
    forwarded: (tenant: string) => host.forwarded(tenant),
    delegated: (tenant: string) => host.delegated(tenant),
    node,
    secret,
  };
  // Loaded when the work is going on again: it takes as long as all else.
  const [{ createHttpServer }, { httpApi }] = await Promise.all([import("./http/create-http-server.ts"), import("./http/http-api.ts")]);
  const drainTimeout = Math.min(grace, longestDrain);
  const drain = new Drain();
  const http = createHttpServer({ operations, cluster, log, drain, drainTimeout });
  let closing: Promise<void> | undefined;
  const close = async () => {
    // The port stays open until the runs are others': clients are told to ask again, and nodes get answers.
    drain.begin();
    await drain.idle(drainTimeout);
    await host.close(grace);
    drain.over();
    await http.close();
    await watchdog?.stop();
    guard?.dispose();
  };
  return {
    client: clientOver(operations(defaultTenant)),
    http,
    plugin: httpApi({ operations, cluster, log, drain }),
    get ready() {
      return host.ready;
    },
    listen: async (at = {}) => {
      if (closing !== undefined)
        throw new ApiError("The orchestrator is closed; create another one.", { code: "SHUTTING_DOWN", retryable: false });
      const url = await listen(http, at);
      if (address === undefined) {
        address = ownAddress(at.host ?? defaultHost, Number(new URL(url).port));
        await host.announce();
      }
      return url;
    },
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  };
}

type ClusterOptions = NonNullable<OrchestratorOptions["cluster"]>;

/** Throws INVALID_OPTION. */
function clusterOptions(options: ClusterOptions = {}): { readonly url: string | undefined; readonly secret: string | undefined } {
  checkOptions(options, ["url", "secret"], "createOrchestrator's cluster");
  const { url = process.env.WOVYR_CLUSTER_URL, secret = process.env.WOVYR_CLUSTER_SECRET } = options;
  if (secret !== undefined && (typeof secret !== "string" || secret.length < shortestSecret || !/^[!-~]+$/.test(secret)))
    throw new WovyrError(`cluster.secret must be a text of at least ${shortestSecret} visible ASCII characters, without spaces`, {
      code: "INVALID_OPTION",
    });
  return { secret, url: url === undefined ? undefined : baseUrl(url, "cluster.url") };
}

function definitionsOf(workflows: readonly AnyWorkflow[]) {
  if (!Array.isArray(workflows))
    throw new WovyrError("createOrchestrator takes `workflows: [ … ]`", {
      code: "INVALID_OPTION",
    });
  return workflows.map((workflow, index) => {
    const definition = (workflow as Partial<AnyWorkflow> | undefined)?.definition;
    if (definition === undefined)
      throw new WovyrError(`workflows[${index}] is not what \`workflow(…)\` returned`, { code: "INVALID_DEFINITION" });
    return definition;
  });
}

function queuesOf(queues: readonly string[] = []): ReadonlySet<string> {
  if (!Array.isArray(queues)) throw new WovyrError("queues must be a list of names", { code: "INVALID_OPTION" });
  return new Set(queues.map((queue) => checkName(queue, "the name of a queue")));
}

function limitsOf({ limits = {} }: OrchestratorOptions): EngineLimits {
  return {
    execution: {
      ...defaultLimits,
      ...(limits.payload !== undefined && { payload: limits.payload }),
      ...(limits.history !== undefined && { history: limits.history }),
    },
    cache: {
      instances: limits.cachedInstances ?? defaultCaps.cachedInstances,
      bytes: limits.cachedBytes ?? defaultCaps.cachedBytes,
    },
    journal: defaultJournalLimits,
    activities: limits.activities ?? defaultCaps.activities,
    admission: {
      ...defaultAdmissionLimits,
      waitingActivities: limits.waitingActivities ?? defaultCaps.waitingActivities,
      commitDelay: limits.commitDelay ?? defaultCaps.commitDelay,
    },
    waiters: 100_000,
  };
}

async function listen(http: FastifyInstance, options: ListenOptions): Promise<string> {
  checkOptions(options, ["port", "host", "allowUnauthenticated"], "listen");
  const { port = defaultPort, host = defaultHost, allowUnauthenticated = false } = options;
  wholeNumber(port, 0, "port of listen", 65_535);
  checkFlag(allowUnauthenticated, "allowUnauthenticated of listen");
  if (typeof host !== "string" || host === "")
    throw new WovyrError(`host of listen must be an address such as "127.0.0.1", not ${host === "" ? "nothing" : typeof host}`, {
      code: "INVALID_OPTION",
    });
  if (!loopback.test(host) && !allowUnauthenticated)
    throw new WovyrError(
      `Listening on ${host} would let anyone who reaches it start and end workflows: there is no authentication yet. Listen on 127.0.0.1 and put a proxy that authenticates in front, or pass allowUnauthenticated: true.`,
      { code: "INSECURE_LISTEN" },
    );
  return http.listen({ port, host });
}
