/** Trips of three bookings: in the end all of them stand, or none does, whatever fails and wherever the process dies. */
import { activity, all, Type, workflow } from "@wovyr/sdk";
import { agencies, type Seat } from "./agencies.ts";

const reserve = activity("reserve", async (seat: Seat, ctx) => agencies.reserve(seat, ctx.idempotencyKey));
const release = activity("release", { retry: { maxAttempts: 3, initialDelay: "1m", jitter: "none" } }, async (seat: Seat, ctx) =>
  agencies.release(seat, ctx.idempotencyKey),
);

const Trip = Type.Object({ trip: Type.String() });

/** One after another. What is booked is released when a later booking fails, the last one first. */
export const booking = workflow("booking", { input: Trip }, async function* ({ trip }) {
  const booked: string[] = [];
  for (const service of ["flight", "hotel", "car"] as const)
    booked.push(yield* reserve({ trip, service }).compensate(() => release({ trip, service })));
  return booked;
});

/**
 * All at once. When one fails, the others are stopped, and nobody knows whether they had their effect: so what was started is released, and not only what
 * completed. That needs nothing of what the reservation came to, and agencies that refuse a reservation whose release came first.
 */
export const express = workflow("express", { input: Trip, compensation: { on: "always", order: "parallel" } }, async function* ({ trip }) {
  const seat = (service: Seat["service"]) => reserve({ trip, service }).compensate(() => release({ trip, service }), { when: "started" });
  return yield* all([seat("flight"), seat("hotel"), seat("car")]);
});
