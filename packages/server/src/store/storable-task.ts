import type { WorkerRow } from "../engine/ports/tasks.ts";
import { checkStorable } from "./storable.ts";

/** Refuses texts of a task that no provider can keep. */
export function checkTask({
  digest,
  fact,
  details,
}: {
  readonly digest?: string;
  readonly fact?: string;
  readonly details?: string | undefined;
}): void {
  checkStorable({ "task.digest": digest, "task.fact": fact, "task.details": details });
}

/** Refuses a worker that no provider can keep. */
export function checkWorker({ id, about, takes }: WorkerRow): void {
  checkStorable({ "worker.id": id, "worker.about": about, "worker.takes": takes.join(" ") });
}
