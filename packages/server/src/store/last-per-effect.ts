/** One row per effect, the last that was given: an upsert may not meet the same row twice. */
export function lastPerEffect<T extends { readonly effect: string }>(rows: readonly T[]): Iterable<T> {
  return rows.length > 1 ? new Map(rows.map((row) => [row.effect, row])).values() : rows;
}
