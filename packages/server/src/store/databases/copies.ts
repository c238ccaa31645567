/**
 * Brings copies of publications from the database that decided on them to another one.
 *
 * 1. Whoever brings one brings first all that were written before it and are not known to be there: so copies of one key come in the order of the publications,
 *    whichever nodes bring them.
 */
import { type Arrival, publicationShard } from "../../engine/ports/databases.ts";
import type { Publication, PublishOutcome } from "../../engine/ports/store.ts";
import type { Database } from "./database.ts";

const pageRows = 200;

type Outcomes = ReadonlyMap<string, PublishOutcome>;

export class Copies {
  readonly #home: Database;
  readonly #target: Database;
  readonly #arrived: (arrivals: readonly Arrival[]) => void;
  #pass: Promise<Outcomes> | undefined;
  #next: Promise<Outcomes> | undefined;

  constructor(home: Database, target: Database, arrived: (arrivals: readonly Arrival[]) => void) {
    this.#home = home;
    this.#target = target;
    this.#arrived = arrived;
  }

  get idle(): boolean {
    return this.#pass === undefined;
  }

  /** Brings a publication that is durable at home, and says what came of it there. */
  async bring(publication: Publication): Promise<PublishOutcome> {
    const brought = (await this.all()).get(nameOf(publication));
    // Somebody else has brought it.
    return brought ?? this.#copy(publication);
  }

  /** Brings all that is there. */
  all(): Promise<Outcomes> {
    if (this.#pass === undefined) return this.#begin();
    // What is under way may have read the outbox already.
    this.#next ??= this.#pass.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<Outcomes> {
    this.#next = undefined;
    const pass = this.#bringAll().finally(() => {
      if (this.#pass === pass) this.#pass = undefined;
    });
    this.#pass = pass;
    return pass;
  }

  async #bringAll(): Promise<Outcomes> {
    const outcomes = new Map<string, PublishOutcome>();
    for (;;) {
      const rows = await this.#home.ask((store) => store.part.listOutbox(this.#target.place, [publicationShard], { limit: pageRows }));
      for (const { parcel } of rows)
        if (parcel.kind === "publication") outcomes.set(nameOf(parcel.publication), await this.#copy(parcel.publication));
      await this.#home.ask((store) => store.part.dropOutbox(rows));
      if (rows.length < pageRows) return outcomes;
    }
  }

  async #copy(publication: Publication): Promise<PublishOutcome> {
    const copied = await this.#target.ask((store) => store.publish(publication));
    const { tenant } = publication;
    this.#arrived(copied.delivered.map(({ run, shard }) => ({ tenant, run, shard })));
    return copied;
  }
}

const nameOf = ({ tenant, id }: Publication): string => JSON.stringify([tenant, id]);
