/** Pages of several databases, each in order, as one page in that order. */
export function mergePages<T>(pages: readonly (readonly T[])[], order: (a: T, b: T) => number, limit: number): readonly T[] {
  const [only] = pages;
  if (only !== undefined && pages.length === 1) return only.slice(0, limit);
  return pages.flat().sort(order).slice(0, limit);
}
