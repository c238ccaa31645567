import { defaultPayloadLimit } from "../model/payload.ts";

/** The bounds of one run. They are part of its history: a run that has met one meets it again on replay. */
export type ExecutionLimits = {
  /** Bytes of one encoded value. */
  readonly payload: number;
  /** Characters of all values that one turn records. */
  readonly turn: number;
  /** Events of one run. */
  readonly history: number;
  /** Milliseconds that the clean-up of a cancelled branch may take. */
  readonly cleanup: number;
};

export const defaultLimits: ExecutionLimits = { payload: defaultPayloadLimit, turn: 32 * 1024 * 1024, history: 100_000, cleanup: 60_000 };
