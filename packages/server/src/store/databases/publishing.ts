/**
 * Publications over several databases: one decides on those of a tenant, the others get copies.
 *
 * 1. What is published is durable when the database of its tenant has it, whatever becomes of the copies; those that are not brought at once wait in its outbox.
 * 2. `reached` counts the runs of the databases that were there.
 */
import type { Arrival } from "../../engine/ports/databases.ts";
import type { Publication, PublishOutcome } from "../../engine/ports/store.ts";
import { atMost } from "./beats.ts";
import { Copies } from "./copies.ts";
import type { Database } from "./database.ts";

/** How long the copies are waited for, in milliseconds. */
const patience = 1_000;

export class Publishing {
  readonly #databases: readonly Database[];
  /** By home, then by target. */
  readonly #copies: readonly (readonly Copies[])[];
  readonly #homeOf: (tenant: string) => number;

  constructor(databases: readonly Database[], homeOf: (tenant: string) => number, arrived: (arrivals: readonly Arrival[]) => void) {
    this.#databases = databases;
    this.#homeOf = homeOf;
    this.#copies = databases.map((home) => databases.map((target) => new Copies(home, target, arrived)));
  }

  /** Whether no copies are being brought. */
  get idle(): boolean {
    return this.#copies.every((targets) => targets.every(({ idle }) => idle));
  }

  async publish(publication: Publication): Promise<PublishOutcome> {
    const home = this.#databases[this.#homeOf(publication.tenant)] as Database;
    const others = this.#databases.filter((database) => database !== home);
    const published = await home.ask((store) =>
      store.part.publish(
        publication,
        others.map(({ place }) => place),
      ),
    );
    // One that conflicts is not published.
    if (published.digest !== publication.digest) return published;
    let { reached } = published;
    const copied = others.map(async ({ place }) => {
      const copy = await this.#copies[home.place]?.[place]?.bring(publication);
      reached += copy?.reached ?? 0;
    });
    await atMost(patience, Promise.allSettled(copied));
    return { ...published, reached };
  }

  /** Brings what is left of publications; resolves when all was tried. */
  async look(): Promise<void> {
    await Promise.allSettled(
      this.#databases.flatMap((home) =>
        this.#databases.map((target) => (home !== target && home.answers ? this.#copies[home.place]?.[target.place]?.all() : undefined)),
      ),
    );
  }
}
