/**
 * The events of a run as they are recorded.
 *
 * 1. The id of an event is `<runId>:<seq>`. `Last-Event-ID` names the last event that the client has: the stream goes on after it, without gap or repetition.
 * 2. An id that was never sent is refused with INVALID_CURSOR before the stream begins: a malformed one, one of another run or instance, one that history does not have yet.
 * 3. A run that is closed and fully seen is answered with 204, which tells a browser not to reconnect.
 */
import {
  ApiError,
  type HistoryPage,
  headerNames,
  isClosingEvent,
  type Operations,
  type StreamItem,
  type View,
  WovyrError,
} from "@wovyr/sdk/internal";
import { bodyText, taken } from "./answer.ts";
import type { EventStreams, Frame } from "./event-streams.ts";
import type { Handlers } from "./handler.ts";

export function streamHandler(streams: EventStreams): Pick<Handlers, "streamInstance"> {
  return {
    async streamInstance({ operations, names: { id }, query, view, request, reply }) {
      streams.admit();
      const after = lastEvent(request.headers[headerNames.lastEventId], query.runId);
      const page = await standing(operations, id, after, query.runId);
      const [seen] = page.items;
      if (after !== undefined && seen !== undefined && page.nextSeq === undefined && isClosingEvent(seen.type))
        return { status: 204, text: "" };
      await streams.serve(reply, (signal) =>
        frames(
          operations.stream(id, {
            runId: page.runId,
            signal,
            ...(after !== undefined && { after }),
          }),
          view,
        ),
      );
      return taken;
    },
  };
}

type Position = { readonly runId: string; readonly seq: number };

function lastEvent(header: string | string[] | undefined, runId: string | undefined): Position | undefined {
  if (header === undefined || header === "") return undefined;
  const match = typeof header === "string" ? /^([A-Za-z0-9_.:~@-]{1,255}):([1-9]\d{0,14})$/.exec(header) : null;
  if (match?.[1] === undefined || (runId !== undefined && runId !== match[1])) throw invalid();
  return { runId: match[1], seq: Number(match[2]) };
}

/** Where the stream begins: the event that the client saw last, or the first one. */
async function standing(operations: Operations, id: string, after: Position | undefined, runId: string | undefined): Promise<HistoryPage> {
  if (after === undefined)
    return operations.history(id, {
      limit: 1,
      ...(runId !== undefined && { runId }),
    });
  const page = await operations.history(id, { runId: after.runId, fromSeq: after.seq, limit: 1 }).catch(unlessMissing);
  if (page === undefined) await operations.history(id, { limit: 1 });
  if (page?.items[0]?.seq !== after.seq) throw invalid();
  return page;
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof WovyrError && error.code === "INSTANCE_NOT_FOUND")) throw error;
}

function invalid(): ApiError {
  return new ApiError("Last-Event-ID names no event of this run", {
    code: "INVALID_CURSOR",
    errors: [
      {
        pointer: `/headers/${headerNames.lastEventId}`,
        message: "names no event of this run",
      },
    ],
  });
}

async function* frames(items: AsyncIterable<StreamItem>, view: View): AsyncGenerator<Frame> {
  for await (const { runId, event } of items) yield `id: ${runId}:${event.seq}\nevent: ${event.type}\ndata: ${bodyText(event, view)}\n\n`;
}
