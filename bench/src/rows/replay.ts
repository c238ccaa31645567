/** Replay: the runtime takes a long history and comes back to where the run was. No store, no decoding of rows. */
import type { Family } from "../family.ts";
import { latencies, percentile, repeat } from "../measure.ts";
import { eventsOf, makeHistory, replay } from "../replay-driver.ts";

const events = 10_000;

export const replayFamily: Family = {
  name: "replay",
  title: "Replay, the runtime alone",
  databases: 0,
  deadline: 120,
  async run({ quick }) {
    const turns = await makeHistory(events);
    const replays = quick ? 5 : 20;
    await latencies(replays, () => replay(turns));
    const values = await repeat(async () => (eventsOf(turns) * 1_000) / percentile(await latencies(replays, () => replay(turns)), 0.5));
    return [{ name: `history of ${events.toLocaleString("en")} events`, unit: "events/s", values, reach: { atLeast: 100_000 } }];
  },
};
