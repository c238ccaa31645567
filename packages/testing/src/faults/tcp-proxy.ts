/**
 * A TCP proxy on the loopback interface that does what networks do: refuse, reset, lose answers, swallow everything for a while, be slow.
 *
 * 1. What it does concerns the connections that are there and those that come, but for `reset`, `loseAnswers` and `dropClients`: they end what is there.
 * 2. Its buffers are bounded: a direction that is slow or held pauses whoever writes into it.
 * 3. After `close` none of its connections and timers is left.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { WovyrError } from "@wovyr/sdk";
import { type Conditions, Direction } from "./tcp-proxy-direction.ts";
import { addressOf, type ProxyTarget, urlThrough } from "./tcp-proxy-target.ts";

export type { ProxyTarget } from "./tcp-proxy-target.ts";

export interface TcpProxy extends AsyncDisposable {
  /** Of 127.0.0.1; it stays the same over `refuse` and `accept`. */
  readonly port: number;
  /** Connections of clients that are open now. */
  readonly connections: number;
  /** Bytes that have come and not yet gone on. */
  readonly buffered: number;
  /** The target's URL, or the given one of the same server, with the proxy in its place. */
  url(of?: string | URL): string;
  /** Resets every connection, on both sides. */
  reset(): void;
  /** Resets each connection at the next answer from behind it, which never arrives: whoever asked cannot know what became of it. */
  loseAnswers(): void;
  /** Ends every connection on the client's side only: the server gets all that was sent, and carries on with it. */
  dropClients(): void;
  /** Lets clients send so many more bytes, together; the connection that brings more is reset then, and the server gets no byte beyond. */
  cutAfter(bytes: number): void;
  /** Holds everything back in both directions until `flow`. */
  blackhole(): void;
  /** Lets at most so many bytes a second pass in each direction of each connection, until `flow`. */
  throttle(bytesPerSecond: number): void;
  /** Lets everything arrive so many milliseconds later, in each direction, until `flow`. */
  delay(milliseconds: number): void;
  /** Ends `blackhole`, `throttle` and `delay`. */
  flow(): void;
  /** Resets every connection and refuses new ones until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a proxy on a free port of 127.0.0.1 that leads to a server on this machine (Postgres, HTTP or any other TCP). */
export async function tcpProxy(target: ProxyTarget): Promise<TcpProxy> {
  const proxy = new Proxying(target);
  await proxy.open();
  return proxy;
}

/** Milliseconds. */
const longestDelay = 3_600_000;

type Pair = {
  readonly near: Socket;
  readonly far: Socket;
  readonly out: Direction;
  readonly back: Direction;
  /** Reset at the next answer. */
  losing: boolean;
  /** The client is gone and the server does not know it. */
  severed: boolean;
};

class Proxying implements TcpProxy {
  readonly #target: ProxyTarget;
  readonly #address: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<Pair>();
  readonly #conditions: Conditions = { held: false, bytesPerSecond: Number.POSITIVE_INFINITY, delay: 0 };
  #bytesLeft = Number.POSITIVE_INFINITY;
  #server: Server | undefined;
  port = 0;

  constructor(target: ProxyTarget) {
    this.#address = addressOf(target);
    this.#target = target;
  }

  async open(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => this.#join(near));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (typeof address === "object" && address !== null) this.port = address.port;
    this.#server = server;
  }

  get connections(): number {
    return [...this.#pairs].filter((pair) => !pair.severed).length;
  }

  get buffered(): number {
    let bytes = 0;
    for (const { out, back, near, far } of this.#pairs) bytes += out.queued + back.queued + near.writableLength + far.writableLength;
    return bytes;
  }

  url(of?: string | URL): string {
    if (of !== undefined) return urlThrough(this.port, of);
    if (typeof this.#target === "string" || this.#target instanceof URL) return urlThrough(this.port, this.#target);
    throw new WovyrError("this proxy was given an address and no URL: call url(of) with one", { code: "INVALID_OPTION" });
  }

  reset(): void {
    for (const pair of this.#pairs) if (!pair.severed) this.#end(pair);
  }

  loseAnswers(): void {
    for (const pair of this.#pairs) pair.losing = true;
  }

  dropClients(): void {
    for (const pair of this.#pairs) this.#sever(pair);
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = checked(bytes, "the bytes of cutAfter()", 0, Number.POSITIVE_INFINITY);
  }

  blackhole(): void {
    this.#change({ held: true });
  }

  throttle(bytesPerSecond: number): void {
    this.#change({ bytesPerSecond: checked(bytesPerSecond, "the bytes per second of throttle()", 1, Number.POSITIVE_INFINITY) });
  }

  delay(milliseconds: number): void {
    this.#change({ delay: checked(milliseconds, "the milliseconds of delay()", 0, longestDelay) });
  }

  flow(): void {
    this.#change({ held: false, bytesPerSecond: Number.POSITIVE_INFINITY, delay: 0 });
  }

  async refuse(): Promise<void> {
    const closed = this.#stopListening();
    this.reset();
    await closed;
  }

  async accept(): Promise<void> {
    if (this.#server === undefined) await this.open();
  }

  async close(): Promise<void> {
    const closed = this.#stopListening();
    for (const pair of this.#pairs) this.#end(pair);
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #stopListening(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    return new Promise((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  #change(conditions: Partial<Conditions>): void {
    Object.assign(this.#conditions, conditions);
    for (const { out, back } of this.#pairs) {
      out.pump();
      back.pump();
    }
  }

  #join(near: Socket): void {
    const far = connect({ ...this.#address, allowHalfOpen: true, noDelay: true });
    const pair: Pair = {
      near,
      far,
      out: new Direction(near, far, this.#conditions, (chunk) => this.#counted(pair, chunk)),
      back: new Direction(far, near, this.#conditions, (chunk) => this.#answered(pair, chunk)),
      losing: false,
      severed: false,
    };
    this.#pairs.add(pair);
    near.on("error", () => pair.severed || this.#end(pair));
    near.on("close", () => pair.severed || this.#closed(pair, near));
    far.on("error", () => this.#end(pair));
    far.on("close", () => this.#closed(pair, far));
    far.on("end", () => pair.severed && this.#end(pair));
  }

  /** One side has closed: in good order when both directions have ended, and else the other side is reset. */
  #closed(pair: Pair, side: Socket): void {
    const inOrder = side.readableEnded && side.writableFinished;
    if (!inOrder || pair.severed) this.#end(pair);
    else if (pair.near.closed && pair.far.closed) this.#pairs.delete(pair);
  }

  #counted(pair: Pair, chunk: Buffer): Buffer | undefined {
    this.#bytesLeft -= chunk.length;
    if (this.#bytesLeft >= 0) return chunk;
    const rest = chunk.subarray(0, chunk.length + this.#bytesLeft);
    this.#bytesLeft = Number.POSITIVE_INFINITY;
    this.#sever(pair);
    // The end comes after what is passed on now.
    setImmediate(() => pair.out.finish());
    return rest.length > 0 ? rest : undefined;
  }

  #answered(pair: Pair, chunk: Buffer): Buffer | undefined {
    if (pair.severed) return undefined;
    if (!pair.losing) return chunk;
    this.#end(pair);
    return undefined;
  }

  #sever(pair: Pair): void {
    if (pair.severed) return;
    pair.severed = true;
    pair.back.stop();
    pair.far.resume();
    reset(pair.near);
    if (pair.far.readableEnded) this.#end(pair);
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.out.stop();
    pair.back.stop();
    for (const socket of [pair.near, pair.far]) reset(socket);
  }
}

/** What was sent is lost and the peer learns of it, unless all of it and its end have left already. */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  // While its end is on its way Node refuses to reset a socket, forgets that it has one, and the process spins for ever when it should end (seen with 20.20).
  const ending = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (ending) socket.destroy();
  else socket.resetAndDestroy();
}

function checked(value: number, what: string, least: number, most: number): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new WovyrError(`${what} must be a number from ${least} to ${most}, not ${value}`, { code: "INVALID_OPTION" });
}
