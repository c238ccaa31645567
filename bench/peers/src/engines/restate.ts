/**
 * Restate: a server of its own with its log on the local disk, which waits for fsync (the default); the service's endpoint and the client are in this process.
 *
 * 1. One node with all roles and the default number of partitions, telemetry off. Requests go through the ingress over HTTP, to the endpoint over HTTP/2.
 * 2. A second start in the same directory finds the data, and the ports that the deployment is registered under.
 * 3. The SDK calls `Promise.withResolvers`, which Node has from 22 on. It gets one where there is none, so that all engines run on the same Node.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import { Arrivals } from "../arrivals.ts";
import { bounded, type Engine, type EngineOptions, timeOfDay } from "../engine.ts";

const inFlight = 200;
const patienceMilliseconds = 60_000;
const askAgainMilliseconds = 5;

Object.assign(Promise, { withResolvers: Reflect.get(Promise, "withResolvers") ?? withResolvers });

function withResolvers() {
  let resolve: (value: unknown) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  return { promise, resolve, reject };
}

const stepOf = (context: restate.Context) => context.run("step", timeOfDay);

/** What runs wait for, by the key that they were given. */
const awakeables = new Arrivals<string>();

function serviceWith(lastStep: () => Promise<void>) {
  return restate.service({
    name: "bench",
    handlers: {
      sequence: async (context: restate.Context, steps: number) => {
        const first = await stepOf(context);
        let last = first;
        for (let done = 1; done < steps; done += 1) last = await stepOf(context);
        return last - first;
      },
      fanOut: async (context: restate.Context, width: number) =>
        (await restate.RestatePromise.all(Array.from({ length: width }, () => stepOf(context)))).length,
      waiting: async (context: restate.Context, key: string) => {
        const { id, promise } = context.awakeable<null>();
        awakeables.arrive(key, id);
        await promise;
      },
      long: async (context: restate.Context, steps: number) => {
        for (let done = 0; done < steps; done += 1) await stepOf(context);
        await context.run("last-step", lastStep);
      },
    },
  });
}

type Ports = { readonly node: number; readonly ingress: number; readonly admin: number; readonly endpoint: number };

export async function start({ directory, lastStep }: EngineOptions): Promise<Engine> {
  const file = join(directory, "ports.json");
  const known = existsSync(file);
  const ports = known ? (JSON.parse(readFileSync(file, "utf8")) as Ports) : await freePorts();
  const server = startServer(directory, ports);
  const service = serviceWith(lastStep);
  const endpoint = await listen(service, ports.endpoint);
  try {
    if (!known) await register(ports);
  } catch (error) {
    server.kill("SIGKILL");
    throw error;
  }
  writeFileSync(file, JSON.stringify(ports));
  const ingress = clients.connect({ url: `http://127.0.0.1:${ports.ingress}` });
  const client = ingress.serviceClient<typeof service>({ name: "bench" });
  const sender = ingress.serviceSendClient<typeof service>({ name: "bench" });
  let keys = 0;
  return {
    run: async (workload, size) => client[workload](size),
    runAll: (workload, size, count) => bounded(inFlight, count, async () => client[workload](size)),
    async startWaiting() {
      keys += 1;
      const key = `${process.pid}-${keys}`;
      const arrival = awakeables.of(key);
      const result = client.waiting(key);
      const id = await arrival;
      return {
        async deliver() {
          await Promise.all([ingress.resolveAwakeable(id, null), result]);
        },
      };
    },
    async startLong(steps) {
      await sender.long(steps);
    },
    async close() {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGKILL");
      await ended;
      endpoint.close();
    },
  };
}

function startServer(directory: string, ports: Ports): ChildProcess {
  const require = createRequire(import.meta.url);
  const binary = createRequire(require.resolve("@restatedev/restate-server/package.json")).resolve(
    `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
  );
  const at = (port: number) => `127.0.0.1:${port}`;
  const server = spawn(binary, ["--no-logo"], {
    cwd: directory,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      RESTATE_BASE_DIR: join(directory, "restate-data"),
      RESTATE_NODE_NAME: "bench",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_ADDRESS: at(ports.node),
      RESTATE_INGRESS__BIND_ADDRESS: at(ports.ingress),
      RESTATE_ADMIN__BIND_ADDRESS: at(ports.admin),
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LOG_FILTER: "error,octocrab=off",
    },
  });
  process.once("exit", () => server.kill("SIGKILL"));
  return server;
}

function listen(service: ReturnType<typeof serviceWith>, port: number): Promise<Http2Server> {
  const endpoint = createHttp2Server(restate.endpoint().bind(service).http2Handler());
  return new Promise((resolve, reject) => {
    endpoint.once("error", reject);
    endpoint.listen(port, "127.0.0.1", () => resolve(endpoint));
  });
}

async function register(ports: Ports): Promise<void> {
  const admin = `http://127.0.0.1:${ports.admin}`;
  await eventually(async () => (await fetch(`${admin}/health`)).ok, "the server's admin API does not answer");
  await eventually(async () => {
    const answer = await fetch(`${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${ports.endpoint}` }),
    });
    return answer.ok;
  }, "the server does not register the endpoint");
  await eventually(async () => (await fetch(`http://127.0.0.1:${ports.ingress}/restate/health`)).ok, "the ingress does not answer");
}

async function eventually(done: () => Promise<boolean>, otherwise: string): Promise<void> {
  const deadline = performance.now() + patienceMilliseconds;
  while (!(await done().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${otherwise} within ${patienceMilliseconds / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, askAgainMilliseconds));
  }
}

async function freePorts(): Promise<Ports> {
  const [node, ingress, admin, endpoint] = (await Promise.all(Array.from({ length: 4 }, freePort))) as [number, number, number, number];
  return { node, ingress, admin, endpoint };
}

function freePort(): Promise<number> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
