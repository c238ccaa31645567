/**
 * Lines of text over HTTP, as they come.
 *
 * 1. Opening is tried again like any call; once lines have come, a connection that breaks is told: what is missing is not asked for again.
 */
import { ApiError } from "../model/errors.ts";
import { mediaTypes } from "../protocol/media.ts";
import { retrying } from "./retry.ts";
import type { Transport } from "./transport.ts";

export async function* streamedLines(transport: Transport, path: string): AsyncGenerator<string> {
  const controller = new AbortController();
  try {
    const { signal } = controller;
    const { body } = await retrying(transport.retry, undefined, () => transport.open(path, undefined, signal, mediaTypes.lines));
    if (body === null) return;
    yield* linesOf(body, path);
  } finally {
    controller.abort();
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>, path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (cause) {
    throw new ApiError(`${path} broke off before its end`, { code: "UNREACHABLE", cause });
  }
  if (rest !== "") yield rest;
}
