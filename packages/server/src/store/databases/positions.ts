/** Positions of several databases as numbers that tell the database as well: those of one database rise as they did there. */

export function positionOf(position: number, place: number, count: number): number {
  return position * count + place;
}

/** The position in one database after which all is that comes after one of several. */
export function positionIn(position: number, place: number, count: number): number {
  return Math.max(0, Math.floor((position - place) / count));
}
