/** The rows of a list, page by page: what of a filter the store does not know is asked here. */
import type { ListRequest, Status } from "@wovyr/sdk/internal";
import { isClosed } from "@wovyr/sdk/internal";
import type { InstanceRow, ListFilter, StoredStatus } from "./ports/store.ts";
import { isOwnWorkflow } from "./registry.ts";
import type { Tenancy } from "./tenancy.ts";
import { statusOf } from "./views.ts";

const maxPagesRead = 20;

export type RowPage = {
  readonly rows: readonly InstanceRow[];
  /** The run after which to go on; absent when there are no more. */
  readonly next?: string;
};

/** Newest first. A page may have fewer rows than the limit and yet not be the last. */
export async function listRows(
  tenancy: Tenancy,
  request: Omit<ListRequest, "cursor" | "limit">,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<RowPage> {
  const { store } = tenancy.engine().options;
  const { limit } = page;
  const filter = filterOf(request);
  const { statuses = [] } = request;
  const found: InstanceRow[] = [];
  let { after } = page;
  for (let pages = 1; ; pages += 1) {
    const rows = await store.listInstances(tenancy.tenant, filter, { ...(after !== undefined && { after }), limit });
    for (const row of rows) {
      after = row.run;
      const hidden = isOwnWorkflow(row.workflow) && request.workflow !== row.workflow;
      if (!hidden && (statuses.length === 0 || statuses.includes(statusOf(row)))) found.push(row);
      if (found.length === limit) return { rows: found, next: row.run };
    }
    if (rows.length < limit) return { rows: found };
    // Few rows have a state that only the row's history tells apart: the caller goes on from here.
    if (pages === maxPagesRead && after !== undefined) return { rows: found, next: after };
  }
}

function filterOf({ workflow, statuses, attributes, startedAfter, startedBefore }: Omit<ListRequest, "cursor" | "limit">): ListFilter {
  return {
    ...(workflow !== undefined && { workflow }),
    ...(statuses !== undefined && statuses.length > 0 && { statuses: [...new Set(statuses.map(storedStatus))] }),
    ...(attributes !== undefined && { attributes }),
    ...(startedAfter !== undefined && { startedAfter: startedAfter.getTime() }),
    ...(startedBefore !== undefined && { startedBefore: startedBefore.getTime() }),
  };
}

function storedStatus(status: Status): StoredStatus {
  if (isClosed(status)) return status;
  switch (status) {
    case "Scheduled":
      return "queued";
    case "Parked":
      return "parked";
    case "Paused":
      return "paused";
    case "Compensating":
      return "compensating";
    default:
      return "open";
  }
}
