/**
 * Lets runs of limited workflows begin when their turn has come.
 *
 * 1. A run is asked for when the turn is durable in which it began to wait, and again whenever it comes into memory: so a crash between the two loses nothing.
 * 2. The store decides, for all nodes, and tells the run by its inbox (ports/admissions.ts).
 * 3. When a run closes here, those that wait are asked for at once; what closes elsewhere is found by looking, as long as a run waits here.
 */
import type { Admission } from "@wovyr/sdk/internal";
import type { Engine } from "../engine.ts";
import type { Instance } from "../instance.ts";
import type { AdmissionAsk } from "../ports/admissions.ts";
import { Rounds } from "./rounds.ts";

type Limit = Extract<Admission, { readonly name: string }>;

class Lane {
  readonly tenant: string;
  readonly limit: Limit;
  /** Runs that wait here, and whether the store knows of each. */
  readonly waiting = new Map<string, { readonly shard: number; known: boolean }>();
  askAt = Number.POSITIVE_INFINITY;

  constructor(tenant: string, limit: Limit) {
    this.tenant = tenant;
    this.limit = limit;
  }

  get isIdle(): boolean {
    return this.waiting.size === 0 && this.askAt === Number.POSITIVE_INFINITY;
  }
}

/** How often it is looked whether the turn of a run has come that others may have made room for. */
const lookPause = 1_000;
/** Runs that one ask is about at most. */
const mostRuns = 500;
const mostLooked = 100;

export class Admissions {
  readonly #engine: Engine;
  readonly #rounds: Rounds<Lane>;

  constructor(engine: Engine) {
    const { clock, log } = engine.options;
    this.#engine = engine;
    this.#rounds = new Rounds({ clock, log, ask: (lanes, isVoid) => this.#ask(lanes, isVoid) });
  }

  /** When it is looked next; milliseconds since the epoch. */
  get nextDue(): number | undefined {
    return this.#rounds.nextDue;
  }

  /** What a run is now is durable, or has come into memory. */
  settled({ identity: { tenant, run, shard }, state }: Instance): void {
    const admission = state.start?.admission;
    if (admission === undefined || !("name" in admission)) return;
    const name = JSON.stringify([tenant, admission.name]);
    if (!state.awaitsAdmission) this.#rounds.find(name)?.waiting.delete(run);
    // One that is at work takes the room that it was given.
    if (!state.awaitsAdmission && !state.closed) return;
    const lane = this.#rounds.lane(name, () => new Lane(tenant, admission));
    if (lane.waiting.has(run)) return;
    if (state.awaitsAdmission) lane.waiting.set(run, { shard, known: false });
    this.#rounds.due(lane, this.#engine.now());
  }

  /** Forgets all that wait: they are asked for again when they come into memory. */
  forget(): void {
    this.#rounds.clear();
  }

  async #ask(lanes: readonly Lane[], isVoid: () => boolean): Promise<void> {
    const { store } = this.#engine.options;
    // Those of shards that have gone to another node are that node's to ask for.
    for (const { waiting } of lanes) for (const [run, { shard }] of waiting) if (!this.#owns(shard)) waiting.delete(run);
    const asked = lanes.map((lane) => ({ lane, runs: runsToAskFor(lane) }));
    const told = await store.admit(asked.flatMap(({ lane, runs }) => asksOf(lane, runs)));
    if (isVoid()) return;
    for (const { lane, runs } of asked) {
      for (const [run] of runs) {
        const waiting = lane.waiting.get(run);
        if (waiting !== undefined) waiting.known = true;
      }
      const more = [...lane.waiting.values()].some(({ known }) => !known);
      if (lane.waiting.size > 0) this.#rounds.due(lane, this.#engine.now() + (more ? 0 : lookPause));
    }
    for (const { tenant, run, shard } of told) if (this.#owns(shard)) this.#engine.inbox.deliver({ tenant, run, shard });
  }

  #owns(shard: number): boolean {
    return this.#engine.ownership.epochOf(shard) !== undefined;
  }
}

/** Those that the store does not know of yet, and the first of the others: their turn may have come without this node's having heard. */
function runsToAskFor({ waiting, limit: { capacity } }: Lane): [string, { readonly shard: number; known: boolean }][] {
  const first = [...waiting].slice(0, Math.min(capacity, mostLooked));
  const unknown = [...waiting].filter(([, { known }]) => !known).slice(0, mostRuns);
  return [...first.filter(([, { known }]) => known), ...unknown];
}

function asksOf({ tenant, limit }: Lane, runs: readonly (readonly [string, { readonly shard: number }])[]): readonly AdmissionAsk[] {
  const { name, capacity, onLimit } = limit;
  const ask = { tenant, name, capacity, onLimit };
  return runs.length === 0 ? [ask] : runs.map(([run, { shard }]) => ({ ...ask, run: { run, shard } }));
}
