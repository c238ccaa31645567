import { connect, createServer, type Socket } from "node:net";

export type TcpProxy = {
  /** The URL with the proxy in place of the server. */
  readonly url: string;
  /** Ends every connection on the client's side only: the server carries on with what it was asked. */
  dropClients(): void;
  /** Ends the connection that brings so many more bytes. */
  cutAfter(bytes: number): void;
  close(): Promise<void>;
};

/** A TCP proxy between a store and its database. */
export async function startProxy(databaseUrl: string): Promise<TcpProxy> {
  const target = new URL(databaseUrl);
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  let left = Number.POSITIVE_INFINITY;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    clients.add(client);
    upstreams.add(upstream);
    client.on("data", (chunk) => {
      left -= chunk.length;
      if (left > 0) upstream.write(chunk);
      else {
        left = Number.POSITIVE_INFINITY;
        client.resetAndDestroy();
        upstream.destroy();
      }
    });
    upstream.on("data", (chunk) => client.destroyed || client.write(chunk));
    client.on("end", () => upstream.end());
    client.on("error", () => {});
    upstream.on("error", () => client.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const url = new URL(databaseUrl);
  url.port = String(address.port);
  url.hostname = "127.0.0.1";
  return {
    url: url.href,
    dropClients() {
      for (const client of clients) client.resetAndDestroy();
      clients.clear();
    },
    cutAfter(bytes) {
      left = bytes;
    },
    async close() {
      for (const socket of [...clients, ...upstreams]) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
