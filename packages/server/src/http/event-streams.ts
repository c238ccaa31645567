/**
 * Server-sent events.
 *
 * 1. What the client has not taken is not produced: the next item is asked for when the last one has left.
 * 2. When the client is gone its subscription ends at once, also when nothing happens; a client that takes nothing for `stalled` is cut off.
 * 3. One timer beats for all streams; there is none while there is no stream.
 * 4. There is a bound on how many are open.
 */
import type { ServerResponse } from "node:http";
import { ApiError } from "@wovyr/sdk/internal";
import type { FastifyReply } from "fastify";

export type StreamLimits = {
  readonly maxStreams: number;
  /** Milliseconds between two signs of life. */
  readonly heartbeat: number;
  /** Milliseconds that a client may leave its stream unread. */
  readonly stalled: number;
};

/** One event, written: `id: …\nevent: …\ndata: …\n\n`. */
export type Frame = string;

type Open = {
  readonly response: ServerResponse;
  readonly controller: AbortController;
  stalledSince: number | undefined;
};

export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #open = new Set<Open>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Throws OVERLOADED when no more streams may be opened. */
  admit(): void {
    if (this.#open.size < this.#limits.maxStreams) return;
    throw new ApiError(`${this.#limits.maxStreams} streams are open already`, {
      code: "OVERLOADED",
    });
  }

  /** Takes over the reply and writes what `frames` yields until it ends; resolves when the stream is over, and rejects with what `frames` throws. */
  async serve(reply: FastifyReply, frames: (signal: AbortSignal) => AsyncIterable<Frame>): Promise<void> {
    this.admit();
    const response = reply.hijack().raw;
    if (response.destroyed) return;
    const stream: Open = {
      response,
      controller: new AbortController(),
      stalledSince: undefined,
    };
    const { signal } = stream.controller;
    this.#add(stream);
    response.once("close", () => this.#remove(stream));
    response.on("error", () => this.#remove(stream));
    reply.headers(headers);
    for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) response.setHeader(name, value);
    response.writeHead(200);
    response.write(":\n\n");
    try {
      for await (const frame of frames(signal)) {
        if (signal.aborted) break;
        if (!response.write(frame)) await drained(stream);
        if (signal.aborted) break;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      response.end();
    }
  }

  /** Ends every stream. */
  close(): void {
    for (const stream of this.#open) {
      stream.controller.abort();
      stream.response.end();
    }
  }

  #add(stream: Open): void {
    this.#open.add(stream);
    this.#timer ??= setInterval(() => this.#beat(), this.#limits.heartbeat).unref();
  }

  #remove(stream: Open): void {
    this.#open.delete(stream);
    stream.controller.abort();
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(): void {
    const now = performance.now();
    for (const { response, stalledSince } of this.#open) {
      if (stalledSince === undefined) response.write(":\n\n");
      else if (now - stalledSince > this.#limits.stalled) response.destroy();
    }
  }
}

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

async function drained(stream: Open): Promise<void> {
  const { response, controller } = stream;
  stream.stalledSince = performance.now();
  await new Promise<void>((resolve) => {
    const go = () => {
      response.removeListener("drain", go);
      controller.signal.removeEventListener("abort", go);
      resolve();
    };
    response.once("drain", go);
    controller.signal.addEventListener("abort", go);
    if (controller.signal.aborted) go();
  });
  stream.stalledSince = undefined;
}
