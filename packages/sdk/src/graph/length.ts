const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

/** A length of time as people write it, by its two largest units: `3d`, `1h 30m`, `250ms`. */
export function lengthText(milliseconds: number): string {
  let rest = Math.max(0, Math.round(milliseconds));
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? "0s" : parts.join(" ");
}
