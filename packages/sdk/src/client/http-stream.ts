/**
 * A run's events over server-sent events.
 *
 * 1. A stream that breaks is taken up again after the last event that was seen: no gap, no repetition.
 * 2. It ends with the run's last event. It gives up when `maxAttempts` connections in a row brought nothing.
 */
import { ApiError } from "../model/errors.ts";
import { decodePayload } from "../model/payload.ts";
import type { HistoryEvent, StreamItem } from "../protocol/operations.ts";
import { isClosingEvent } from "../protocol/status.ts";
import { type ServerSentEvent, serverSentEvents } from "./event-source.ts";
import { patiently, pause, retrying } from "./retry.ts";
import type { Transport } from "./transport.ts";

type Position = { readonly runId: string; readonly seq: number };

export async function* streamItems(
  transport: Transport,
  path: string,
  after: Position | undefined,
  outside: AbortSignal | undefined,
): AsyncGenerator<StreamItem> {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = () => controller.abort(outside?.reason);
  outside?.addEventListener("abort", stop, { once: true });
  if (outside?.aborted) stop();
  const { maxAttempts, initialDelay } = transport.retry;
  let last = after && `${after.runId}:${after.seq}`;
  try {
    for (let fruitless = 0; fruitless < maxAttempts; fruitless++) {
      if (fruitless > 0) await pause(Math.random() * initialDelay * 2 ** fruitless, signal);
      const response = await retrying(patiently(transport.retry, 0), signal, () => transport.open(path, last, signal));
      if (response.status === 204 || response.body === null) return;
      for await (const item of unlessBroken(response.body, signal)) {
        last = `${item.runId}:${item.event.seq}`;
        fruitless = 0;
        yield item;
        if (isClosingEvent(item.event.type)) return;
      }
    }
    throw new ApiError(`The stream ${path} broke off ${maxAttempts} times in a row`, { code: "UNREACHABLE" });
  } finally {
    outside?.removeEventListener("abort", stop);
    controller.abort();
  }
}

async function* unlessBroken(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<StreamItem> {
  try {
    for await (const event of serverSentEvents(body)) yield itemOf(event);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError) throw error;
  }
}

function itemOf({ id, data }: ServerSentEvent): StreamItem {
  return { runId: id.slice(0, id.lastIndexOf(":")), event: decodePayload(data) as HistoryEvent };
}
