/**
 * The thread that runs PGlite, which blocks its thread while it works.
 *
 * 1. Requests are served one after another, in the order in which they came; answers carry their numbers.
 */
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import type { PgliteAnswer, PgliteRequest, PgliteWorkerData } from "./protocol.ts";

const port = parentPort;
if (port === null) throw new Error("pglite-thread runs in a thread of its own");

const { dataDirectory } = workerData as PgliteWorkerData;
const opening = PGlite.create(dataDirectory);
// Rejections are answered request by request.
opening.catch(() => {});
let last: Promise<void> = Promise.resolve();

port.on("message", (request: PgliteRequest) => {
  last = last.then(async () => port.postMessage(await serve(request)));
});

async function serve(request: PgliteRequest): Promise<PgliteAnswer> {
  const { id } = request;
  try {
    const database = await opening;
    switch (request.type) {
      case "query": {
        const { rows } = await database.query(request.text, [...request.params], { rowMode: "array" });
        return { id, rows: rows as (string | number | boolean | null)[][] };
      }
      case "script":
        await database.exec(request.text);
        return { id, rows: [] };
      case "close":
        await database.close();
        return { id, rows: [] };
    }
  } catch (error) {
    const { message, code } = error as { message?: unknown; code?: unknown };
    const answered = typeof code === "string" && code.length === 5;
    return { id, message: String(message ?? error), code: answered ? code : "PGLITE", answered };
  }
}
