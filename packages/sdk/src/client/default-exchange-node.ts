/** How requests are sent on Node: by its own HTTP client, which takes about a third of the processor time of its `fetch` (`npm run bench -- http`). Connections are kept alive. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { HttpAnswer, SendRequest } from "./exchange.ts";

/** Idle connections that are kept. */
const maxFreeSockets = 256;
const agents = {
  http: new HttpAgent({ keepAlive: true, maxFreeSockets }),
  https: new HttpsAgent({ keepAlive: true, maxFreeSockets }),
};

export const sendByDefault: SendRequest = ({ url, method, headers, body, signal }) =>
  new Promise<HttpAnswer>((resolve, reject) => {
    const secure = url.startsWith("https:");
    const length = body === undefined ? undefined : { "content-length": String(Buffer.byteLength(body)) };
    const options = { method, headers: { ...headers, ...length }, agent: secure ? agents.https : agents.http };
    const request = (secure ? httpsRequest : httpRequest)(url, options);
    const abort = () => request.destroy(signal.reason instanceof Error ? signal.reason : new Error("aborted", { cause: signal.reason }));
    const end = (settle: () => void) => {
      signal.removeEventListener("abort", abort);
      settle();
    };
    request.once("error", (error) => end(() => reject(error)));
    request.once("response", (response) => {
      textOf(response).then(
        (text) => end(() => resolve({ status: response.statusCode ?? 0, header: (name) => headerOf(response, name), text })),
        (error) => end(() => reject(error)),
      );
    });
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    request.end(body);
  });

function headerOf(response: IncomingMessage, name: string): string | null {
  const value = response.headers[name.toLowerCase()];
  return value === undefined ? null : String(value);
}

async function textOf(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
