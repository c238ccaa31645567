import { WovyrError } from "@wovyr/sdk";
import type { Incoming } from "@wovyr/sdk/internal";
import type { InstanceIdentity } from "./instance.ts";
import type { NewInstance } from "./ports/store.ts";

/** How long a start's key is known, in milliseconds. */
export const startKeyLife = 24 * 3_600_000;

/** Why a new instance was not created; the caller finds out which identity was taken. */
export class StartRefused extends WovyrError {}

export type Start = {
  readonly identity: InstanceIdentity;
  readonly create: NewInstance;
  readonly fact: Extract<Incoming, { type: "InstanceStarted" }>;
};
