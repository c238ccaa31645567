import type { ListFilter } from "../../engine/ports/store.ts";
import { encodeAttributes } from "./attribute-text.ts";
import type { SqlValue } from "./driver.ts";

export type Statement = {
  readonly text: string;
  readonly params: readonly SqlValue[];
};

/** The statement that lists a tenant's instances from the newest on. */
export function listInstances(tenant: string, filter: ListFilter, page: { after?: string; limit: number }): Statement {
  const params: SqlValue[] = [];
  const bind = (value: SqlValue, type: string): string => `$${params.push(value)}::${type}`;
  const conditions = [`i.tenant = ${bind(tenant, "text")}`];
  if (page.after !== undefined) conditions.push(`i.run < ${bind(page.after, "text")}`);
  const instances = filter.id === undefined ? "wovyr.instances i" : runsOf("$1::text", bind(filter.id, "text"));
  if (filter.workflow !== undefined) conditions.push(`i.workflow = ${bind(filter.workflow, "text")}`);
  if (filter.statuses !== undefined) conditions.push(`i.status = any (string_to_array(${bind(filter.statuses.join(","), "text")}, ','))`);
  if (filter.startedAfter !== undefined) conditions.push(`i.created_at > ${bind(filter.startedAfter, "bigint")}`);
  if (filter.startedBefore !== undefined) conditions.push(`i.created_at < ${bind(filter.startedBefore, "bigint")}`);
  for (const [name, value] of Object.entries(filter.attributes ?? {})) {
    const equal = `a.attributes @> ${bind(encodeAttributes({ [name]: value }), "text::jsonb")}`;
    conditions.push(
      typeof value === "string" ? `(${equal} or a.attributes @> ${bind(encodeAttributes({ [name]: [value] }), "text::jsonb")})` : equal,
    );
  }
  return {
    text: `select wovyr.instance_1(i, a.attributes) from ${instances}
left join wovyr.instance_attributes a on a.tenant = i.tenant and a.run = i.run
where ${conditions.join(" and ")} order by i.run desc limit ${bind(page.limit, "integer")}`,
    params,
  };
}

/** The runs of an id, by the index of open runs and that of closed ones; `offset 0` keeps the order in which they are looked up. */
function runsOf(tenant: string, id: string): string {
  return `(
  select o.run from wovyr.instances o where o.tenant = ${tenant} and o.id = ${id} and o.closed_at is null
  union all select c.run from wovyr.instances c where c.tenant = ${tenant} and c.id = ${id} and c.closed_at is not null
) r cross join lateral (select * from wovyr.instances f where f.tenant = ${tenant} and f.run = r.run offset 0) i`;
}
