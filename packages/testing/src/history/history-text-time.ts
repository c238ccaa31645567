/** Lengths of time as people say them. */

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

/** Milliseconds as `3d 2h`, `1m 30s`, `250ms`, `0ms`. */
export function lengthText(milliseconds: number): string {
  if (milliseconds < 0) return `-${lengthText(-milliseconds)}`;
  const parts: string[] = [];
  let left = Math.round(milliseconds);
  for (const [unit, size] of units) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join(" ") || "0ms";
}

/** The distance of a time from the start of a run: `+3d 2h`, `+0`. */
export function offsetText(milliseconds: number): string {
  if (milliseconds === 0) return "+0";
  return milliseconds > 0 ? `+${lengthText(milliseconds)}` : lengthText(milliseconds);
}

/** Milliseconds since the epoch of a date, of its text or of such a number; NaN of anything else. */
export function timeOf(value: unknown): number {
  return value instanceof Date || typeof value === "string" || typeof value === "number" ? new Date(value).getTime() : Number.NaN;
}
