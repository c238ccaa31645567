/**
 * The outside world of the booking example: agencies that sell flights, hotels and cars.
 *
 * 1. They do each thing once per key, however often they are told.
 * 2. What was released cannot be reserved any more: a reservation that comes too late finds its release.
 */
import { NonRetryableError } from "@wovyr/sdk";

export const services = ["flight", "hotel", "car"] as const;
export type Service = (typeof services)[number];
export type Seat = { readonly trip: string; readonly service: Service };

class Agencies {
  /** Has nothing left to sell. */
  soldOut: Service | undefined;
  /** Does not answer when something is to be released. */
  closed: Service | undefined;
  /** What was done, in order. */
  readonly book: string[] = [];
  readonly #keys = new Set<string>();
  readonly #released = new Set<string>();
  readonly #reserved = new Set<string>();

  reserve({ trip, service }: Seat, key: string): string {
    const reservation = `${service} of ${trip}`;
    if (this.#keys.has(key)) return reservation;
    if (service === this.soldOut) throw new NonRetryableError(`every ${service} is taken`);
    if (this.#released.has(reservation)) throw new NonRetryableError(`the ${reservation} was released before`);
    this.#keys.add(key);
    this.#reserved.add(reservation);
    this.book.push(`reserve ${service}`);
    return reservation;
  }

  release({ trip, service }: Seat, key: string): void {
    if (this.#keys.has(key)) return;
    if (service === this.closed) throw new Error(`nobody answers at the ${service}'s`);
    const reservation = `${service} of ${trip}`;
    this.#keys.add(key);
    this.#released.add(reservation);
    if (this.#reserved.delete(reservation)) this.book.push(`release ${service}`);
  }

  /** What a trip has in the end. */
  standing(trip: string): Service[] {
    return services.filter((service) => this.#reserved.has(`${service} of ${trip}`));
  }

  reset(): void {
    this.soldOut = undefined;
    this.closed = undefined;
    this.book.length = 0;
    for (const set of [this.#keys, this.#released, this.#reserved]) set.clear();
  }
}

export const agencies = new Agencies();
