/**
 * Lines of text as they are made.
 *
 * 1. What goes wrong before the first line is answered as a problem. After it, the connection breaks off: whoever reads must see that the end is missing.
 * 2. What the client has not taken is not made.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { mediaTypes } from "@wovyr/sdk/internal";
import type { FastifyReply } from "fastify";

export async function streamLines(reply: FastifyReply, lines: AsyncIterable<string>): Promise<void> {
  const reading = lines[Symbol.asyncIterator]();
  const first = await reading.next();
  const response = reply.hijack().raw;
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) response.setHeader(name, value);
  response.writeHead(200, { "content-type": mediaTypes.lines });
  await pipeline(Readable.from(withNewlines(first, reading)), response);
}

async function* withNewlines(first: IteratorResult<string>, rest: AsyncIterator<string>): AsyncGenerator<string> {
  for (let line = first; line.done !== true; line = await rest.next()) yield `${line.value}\n`;
}
