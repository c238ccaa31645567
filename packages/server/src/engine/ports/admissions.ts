/**
 * Runs that wait for their turn, as a store keeps them for all nodes.
 *
 * 1. Of a limit never more than `capacity` admitted runs are open. What is admitted is counted by the runs themselves: one that has closed, however it did,
 *    or that is gone, is none.
 * 2. Runs are admitted in the order in which they were asked for. An ask for one that is known already changes nothing, and tells when it has been admitted.
 * 3. What was decided becomes durable together with the message that tells the run, in its inbox.
 */
import type { OnLimit } from "@wovyr/sdk/internal";

export type AdmissionAsk = {
  readonly tenant: string;
  /** Of the limit. */
  readonly name: string;
  readonly capacity: number;
  readonly onLimit: OnLimit;
  /** The run that waits; absent where it is only asked whether others may be admitted. */
  readonly run?: { readonly run: string; readonly shard: number };
};

/** A run whose inbox holds a message now. */
export type Told = { readonly tenant: string; readonly run: string; readonly shard: number };

/** The messages that decisions are told by. */
export const admissionMessage = "admission";
export const supersededMessage = "superseded";

/** What runs are told: facts, as an inbox holds them. */
export const admissionFacts = {
  admitted: JSON.stringify({ type: "AdmissionDecided", admitted: true }),
  refused: JSON.stringify({ type: "AdmissionDecided", admitted: false }),
  superseded: JSON.stringify({
    type: "CancelRequested",
    message: supersededMessage,
    mode: "graceful",
    reason: "cancelled by its concurrency limit: a newer run takes its place",
  }),
} as const;
