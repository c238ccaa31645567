/**
 * The life of a node in several databases at once: it beats in each, for the shards that live there.
 *
 * 1. The first database numbers the shards of a group, the others are told.
 * 2. A database that does not answer stops only its own shards: what it said last counts while the lease that it gave runs, counted from before the ask, and
 *    after that nobody owns them. A beat waits for it a tenth of the lease, and a second at most, once; while it is silent the others do not wait at all.
 * 3. Shards of which it was told that nobody owns them are given up before they are taken again: their epochs rise, and what was under way for them is void.
 * 4. The nodes are those of all databases, each with those that do not know of it. One is draining if any says so.
 */
import { WovyrError } from "@wovyr/sdk";
import {
  type Beat,
  type HandedShard,
  type Membership,
  type NodeRow,
  type ShardRow,
  StoreUnavailableError,
} from "../../engine/ports/store.ts";
import { compareText } from "../text-order.ts";
import type { Database } from "./database.ts";

/** What a database said last to a node. */
type Said = { readonly heard: Membership; readonly until: number };

type Standing = {
  readonly said: (Said | undefined)[];
  /** Beats that have not been answered yet. */
  readonly underWay: Set<Database>;
  /** Of which it was told that nobody owns their shards, since they were silent for too long. */
  readonly lapsed: Set<Database>;
};

export type BeatsOptions = {
  readonly databases: readonly Database[];
  readonly now: () => number;
  readonly placeOf: (shard: number) => number;
  /** Opens a database that could not be reached when the others were opened. */
  readonly open: (database: Database) => Promise<void>;
};

/** Milliseconds. */
const shortestPatience = 250;
const longestPatience = 1_000;

export class Beats {
  readonly #options: BeatsOptions;
  readonly #standings = new Map<string, Standing>();
  /** The first shards of groups, and in which databases they are known to be. */
  readonly #firsts = new Map<string, number>();
  readonly #made = new Set<string>();

  constructor(options: BeatsOptions) {
    this.#options = options;
  }

  /** The shards of a database that the nodes that beat here own at present, by what was heard last. */
  owned(place: number): readonly number[] {
    const now = this.#options.now();
    return [...this.#standings].flatMap(([name, { said }]) => {
      const last = said[place];
      const node = nodeOf(name);
      return last === undefined || last.until <= now
        ? []
        : last.heard.shards.filter(({ owner }) => owner === node).map(({ shard }) => shard);
    });
  }

  async beat(asked: Beat): Promise<Membership> {
    const { databases } = this.#options;
    const name = nameOf(asked);
    const standing = this.#standings.get(name) ?? { said: databases.map(() => undefined), underWay: new Set(), lapsed: new Set() };
    this.#standings.set(name, standing);
    const failures: unknown[] = [];
    const fresh = new Set<Said>();
    const beats = databases
      .filter((database) => !standing.underWay.has(database))
      .map((database) =>
        this.#one(database, asked, standing).then(
          (said) => fresh.add(said),
          (error: unknown) => failures.push(error),
        ),
      );
    await atMost(Math.max(shortestPatience, Math.min(longestPatience, asked.lease / 10)), Promise.all(beats));
    for (const database of standing.underWay) database.silent = true;
    const refusal = failures.find((error) => !(error instanceof StoreUnavailableError));
    if (refusal !== undefined) throw refusal;
    if (fresh.size === 0) throw failures[0] ?? databases[0]?.unavailable("no database answers");
    return this.#merged(standing, fresh, asked);
  }

  async leave(group: string, node: string): Promise<void> {
    this.#standings.delete(nameOf({ group, node }));
    const left = await Promise.allSettled(this.#options.databases.map((database) => database.ask((store) => store.leave(group, node))));
    for (const each of left) if (each.status === "rejected") throw each.reason;
  }

  async #one(database: Database, asked: Beat, standing: Standing): Promise<Said> {
    const { now, placeOf } = this.#options;
    const isHere = (shard: number) => placeOf(shard) === database.place;
    standing.underWay.add(database);
    try {
      if (database.store === undefined) await this.#options.open(database);
      const first = await this.#firstOf(asked, database);
      const all = Array.from({ length: asked.shards }, (_, slot) => first + slot);
      const lost = this.#lost(database, asked, standing);
      const sent = now();
      const heard = await database.askAnyway((store) =>
        store.beat({
          ...asked,
          give: [...asked.give.filter(({ shard }) => isHere(shard)), ...(lost ?? [])],
          take: (asked.take === "free" ? all : asked.take).filter(isHere),
        }),
      );
      const said = { heard: { ...heard, shards: heard.shards.filter(({ shard }) => isHere(shard)) }, until: sent + asked.lease };
      standing.said[database.place] = said;
      if (lost !== undefined) standing.lapsed.delete(database);
      return said;
    } finally {
      standing.underWay.delete(database);
      database.silent = false;
    }
  }

  /** What is to be given up for that; undefined when it is nothing. */
  #lost(database: Database, { node, give }: Beat, { said, lapsed }: Standing): readonly HandedShard[] | undefined {
    if (!lapsed.has(database)) return undefined;
    const owned = said[database.place]?.heard.shards.filter(({ owner }) => owner === node) ?? [];
    return owned.filter(({ shard }) => give.every((given) => given.shard !== shard)).map(({ shard, epoch }) => ({ shard, epoch }));
  }

  /** Where the shards of the group begin, in this database like in all of them. */
  async #firstOf({ group, shards }: Beat, database: Database): Promise<number> {
    const { databases } = this.#options;
    const known = this.#firsts.get(group);
    const made = `${database.place} ${group}`;
    if (known !== undefined && this.#made.has(made)) return known;
    const here = await database.askAnyway((store) => store.part.group(group, shards, known));
    const [numbering] = databases;
    const first =
      here ??
      (database === numbering
        ? await database.askAnyway((store) => store.part.group(group, shards, "next"))
        : await this.#numbered(group, shards, database));
    if (first === undefined) throw database.unavailable(`it does not know the group "${group}"`);
    if (first.shards !== shards)
      throw new WovyrError(`group "${group}" was created with ${first.shards} shards and cannot be opened with ${shards}`, {
        code: "INVALID_OPTION",
      });
    if (known !== undefined && first.first !== known)
      throw new WovyrError(`group "${group}" has other shards in the database ${database.label} than in the others`, {
        code: "STORE_INCOMPATIBLE",
      });
    this.#firsts.set(group, first.first);
    this.#made.add(made);
    return first.first;
  }

  /** The first database says it, and makes the group if need be. */
  async #numbered(group: string, shards: number, database: Database) {
    const [numbering] = this.#options.databases;
    const first = await numbering?.ask((store) => store.part.group(group, shards, "next"));
    return first && database.askAnyway((store) => store.part.group(group, shards, first.first));
  }

  #merged({ said, lapsed }: Standing, fresh: ReadonlySet<Said>, { lease, shards: count, group }: Beat): Membership {
    const now = this.#options.now();
    const first = this.#firsts.get(group) ?? 0;
    const nodes = new Map<string, NodeRow>();
    const living = said.map(() => new Set<string>());
    const shards = new Map<number, ShardRow>();
    let within = lease;
    for (const [place, last] of said.entries()) {
      if (last === undefined) continue;
      const left = last.until - now;
      // What is about to be over is over, so that it never is while somebody relies on it.
      const counts = fresh.has(last) || left > lease / 6;
      if (counts && !fresh.has(last)) within = Math.min(within, left);
      if (!counts) lapsed.add(this.#options.databases[place] as Database);
      for (const { owner, ...row } of last.heard.shards) shards.set(row.shard, counts && owner !== undefined ? { ...row, owner } : row);
      if (!counts) continue;
      for (const each of last.heard.nodes) {
        nodes.set(each.node, together(nodes.get(each.node), each));
        living[place]?.add(each.node);
      }
    }
    const unknown = Array.from({ length: count }, (_, slot) => first + slot).filter((shard) => !shards.has(shard));
    for (const shard of unknown) shards.set(shard, { shard, epoch: 0 });
    return {
      nodes: [...nodes.values()].map((row) => withAbsence(row, living)).sort((a, b) => compareText(a.node, b.node)),
      shards: [...shards.values()].sort((a, b) => a.shard - b.shard),
      ...(within < lease && { within }),
    };
  }
}

function withAbsence(row: NodeRow, living: readonly ReadonlySet<string>[]): NodeRow {
  const absent = [...living.keys()].filter((place) => living[place]?.has(row.node) !== true);
  return absent.length === 0 ? row : { ...row, absent };
}

function together(known: NodeRow | undefined, row: NodeRow): NodeRow {
  if (known === undefined) return row;
  const { url = known.url } = row;
  return {
    ...row,
    ...(url !== undefined && { url }),
    draining: known.draining || row.draining,
    remaining: Math.max(known.remaining, row.remaining),
  };
}

const nameOf = ({ group, node }: Pick<Beat, "group" | "node">): string => JSON.stringify([group, node]);
const nodeOf = (name: string): string => (JSON.parse(name) as [string, string])[1];

/** Waits for `work`, but not longer than so many milliseconds. */
export async function atMost(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
