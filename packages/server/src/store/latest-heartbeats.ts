import type { Heartbeat } from "../engine/ports/store.ts";

/** Whether a heartbeat takes the place of another one of its effect. */
export function isLater(beat: Heartbeat, known: Heartbeat): boolean {
  return beat.attempt > known.attempt || (beat.attempt === known.attempt && beat.at > known.at);
}

/** One heartbeat of each effect. */
export function latestHeartbeats(all: readonly Heartbeat[]): readonly Heartbeat[] {
  const latest = new Map<string, Heartbeat>();
  for (const beat of all) {
    const key = `${beat.tenant}\u001f${beat.run}\u001f${beat.effect}`;
    const known = latest.get(key);
    if (known === undefined || isLater(beat, known)) latest.set(key, beat);
  }
  return [...latest.values()];
}
