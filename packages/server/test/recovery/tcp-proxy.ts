/** A TCP proxy on the loopback interface that can do what networks do: refuse, reset, lose answers, swallow everything for a while. */
import { connect, createServer, type Server, type Socket } from "node:net";

export type TcpProxy = {
  readonly port: number;
  /** Resets every connection. */
  reset(): void;
  /** Resets each connection at the next answer from behind it, which never arrives: whoever asked cannot know what became of it. */
  loseAnswers(): void;
  /** Holds everything back in both directions until `flow`. */
  blackhole(): void;
  flow(): void;
  /** Resets every connection and refuses new ones until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
};

type Pair = { readonly near: Socket; readonly far: Socket; losing: boolean };

export async function tcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let held = false;
  let server: Server | undefined;

  const end = (pair: Pair) => {
    pairs.delete(pair);
    pair.near.resetAndDestroy();
    pair.far.destroy();
  };
  const join = (near: Socket) => {
    const far = connect(target.port, target.host);
    const pair: Pair = { near, far, losing: false };
    pairs.add(pair);
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => end(pair));
      socket.on("close", () => end(pair));
      if (held) socket.pause();
    }
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk) => {
      if (pair.losing) end(pair);
      else near.write(chunk);
    });
    if (held) for (const socket of [near, far]) socket.pause();
  };
  const open = (port: number) =>
    new Promise<number>((resolve, reject) => {
      server = createServer(join);
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        const address = server?.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  const shut = () => new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  const reset = () => {
    for (const pair of [...pairs]) end(pair);
  };

  const port = await open(0);
  return {
    port,
    reset,
    loseAnswers() {
      for (const pair of pairs) pair.losing = true;
    },
    blackhole() {
      held = true;
      for (const { near, far } of pairs) for (const socket of [near, far]) socket.pause();
    },
    flow() {
      held = false;
      for (const { near, far } of pairs) for (const socket of [near, far]) socket.resume();
    },
    async refuse() {
      const closed = shut();
      reset();
      await closed;
    },
    async accept() {
      await open(port);
    },
    async close() {
      const closed = shut();
      reset();
      await closed;
    },
  };
}

/** The same database, reached through the proxy. */
export function through(proxy: TcpProxy, url: string): string {
  const changed = new URL(url);
  changed.hostname = "127.0.0.1";
  changed.port = String(proxy.port);
  return changed.href;
}

export function targetOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || "5432") };
}
