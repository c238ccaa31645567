/** Moves everything that is recorded into the past, as if the orchestrator had been down for so long. */
import type { Ground } from "./ground.ts";

export async function letTimePass(place: Ground, milliseconds: number): Promise<void> {
  await place.sql(async (driver) => {
    await driver.query(
      "write",
      `update wovyr.history h set events = replace(h.events, t.due::text, (t.due - ${milliseconds}::bigint)::text)
       from wovyr.timers t where t.tenant = h.tenant and t.run = h.run`,
      [],
    );
    await driver.query("write", `update wovyr.history set at = at - ${milliseconds}::bigint`, []);
    await driver.query("write", `update wovyr.timers set due = due - ${milliseconds}::bigint`, []);
    await driver.query("write", `update wovyr.instances set created_at = created_at - ${milliseconds}::bigint`, []);
  });
}
