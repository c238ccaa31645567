/** A place in the tree of a run's effects, and what it contains. */
import type { EffectId } from "../model/history.ts";
import type { EffectPlace } from "./effect-place.ts";
import type { GraphAttempt, GraphFailure, GraphNode, NodeKind, NodeState } from "./graph.ts";

/** An effect that history tells of. */
export type Told = {
  readonly kind: NodeKind;
  readonly name: string;
  readonly startedAt: Date;
  state: NodeState | undefined;
  endedAt?: Date;
  dueAt?: Date;
  failure?: GraphFailure;
  childRun?: NonNullable<GraphNode["childRun"]>;
  abandoned?: boolean;
  attempts?: Mutable<GraphAttempt>[];
  losses: number;
};

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A place in the tree: an effect, what its branches belong to, or a generator with steps; as ids go, one of the three. */
export type Place = {
  readonly id: EffectId;
  readonly stands: EffectPlace;
  readonly within: Place | undefined;
  /** Number of the first event that tells of it or of what it contains. */
  readonly since: number;
  told: Told | undefined;
  readonly steps: Place[];
  readonly branches: Place[];
  /** Timers of the runtime's own. */
  readonly beside: Place[];
  /** What undoes what was done in it. */
  readonly undoing: Undoing[];
  /** Number of the event that ended it; infinite while it is open. */
  until: number;
};

/** Compensations, in the order in which they begin. */
export type Undoing = { readonly order: "reverse" | "parallel"; readonly since: number; readonly places: readonly Place[]; next: number };

/** Everything that a place contains. */
export function* partsOf(place: Place): Generator<Place> {
  yield* place.steps;
  yield* place.branches;
  yield* place.beside;
  for (const { places } of place.undoing) yield* places;
}

export function newPlace(id: EffectId, stands: EffectPlace, within: Place | undefined, since: number): Place {
  return { id, stands, within, since, told: undefined, steps: [], branches: [], beside: [], undoing: [], until: since };
}

/** Timers that bound the clean-up of a generator stand beside its steps; other ones beside what has a node for them. */
export const boundsCleanup = ({ stands }: Place): boolean => stands.kind === "beside" && stands.what.startsWith("cleanup");

/** Whether it is shown itself: an effect is, and what has branches or a time limit; a generator is shown by its steps. */
export function hasNode({ told, branches, beside }: Place): boolean {
  return told !== undefined || branches.length > 0 || beside.some((timer) => !boundsCleanup(timer));
}

const indexOf = ({ stands }: Place): number => (stands.kind === "step" || stands.kind === "branch" ? stands.index : -1);

/** Behind every place that has a lower index, and behind what has none and came before. */
export function insert(places: Place[], place: Place, index: number): void {
  let at = places.length;
  for (let before = at - 1; before >= 0 && indexOf(places[before] as Place) > index; before -= 1) at = before;
  places.splice(at, 0, place);
}

/** Whether something in it has not ended. */
export function isOpen(place: Place): boolean {
  return untilOf(place) === Number.POSITIVE_INFINITY;
}

/** Number of the event that ended the last of what it contains; infinite while something is open. */
export function untilOf(place: Place): number {
  let until = place.until;
  for (const part of partsOf(place)) until = Math.max(until, untilOf(part));
  return until;
}
