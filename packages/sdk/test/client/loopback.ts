import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export type Seen = { readonly method: string; readonly path: string; readonly headers: IncomingMessage["headers"]; readonly body: string };

/** A server on loopback that records every request and answers the n-th one (from 1) as told; it is closed with the test. */
export async function loopback(
  context: TestContext,
  answer: (response: ServerResponse, times: number, seen: Seen) => void,
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const record = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(record);
      answer(response, seen.length, record);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

export function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response
    .writeHead(status, { "content-type": "application/json", ...headers })
    .end(typeof body === "string" ? body : JSON.stringify(body));
}

export function problem(
  response: ServerResponse,
  status: number,
  code: string,
  retryable: boolean,
  headers: Record<string, string> = {},
): void {
  send(response, status, { type: `urn:wovyr:error:${code}`, title: code, status, detail: `it is ${code}`, code, retryable }, headers);
}
