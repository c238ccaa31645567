/** The cheapest HTTP client that can be: keeps connections and requests in flight on them, reads nothing but lengths and statuses. */
import { connect, type Socket } from "node:net";

const headEnd = Buffer.from("\r\n\r\n");

export class RawConnection {
  readonly #socket: Socket;
  readonly #waiting: { resolve: (status: number) => void; reject: (error: Error) => void }[] = [];
  #rest: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.on("close", () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("the server closed the connection"));
    });
    this.#socket.on("error", () => {});
  }

  /** Resolves with the status. */
  send(request: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = this.#rest.indexOf(headEnd);
      if (end < 0) return;
      const head = this.#rest.toString("latin1", 0, end);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
      if (Number.isNaN(length)) {
        this.#socket.destroy(new Error("an answer without a length"));
        return;
      }
      const total = end + headEnd.length + length;
      if (this.#rest.length < total) return;
      this.#rest = this.#rest.subarray(total);
      this.#waiting.shift()?.resolve(Number(head.slice(9, 12)));
    }
  }
}

export function startRequest(port: number, workflow: string, input: unknown): Buffer {
  const body = JSON.stringify({ input });
  return Buffer.from(
    `POST /v1/workflows/${workflow}/instances?wait=30s HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
