/**
 * How effects become commands: values are encoded and bounded, then recorded, or compared with what is recorded.
 *
 * 1. Values are encoded inside the turn, so that a bad one throws at its yield and nothing of it is recorded.
 * 2. Every bound is counted alike when a turn is made and when it is replayed: what was refused once is refused on every replay.
 */
import { parse, type Schema } from "../define/schema.ts";
import type { CallSite } from "../effects/effect.ts";
import { digest } from "../model/digest.ts";
import { WovyrError } from "../model/errors.ts";
import type { Command, EffectId, Payload } from "../model/history.ts";
import { encodePayload } from "../model/payload.ts";
import type { ExecutionLimits } from "./limits.ts";
import type { Divergence, Recorder } from "./recorder.ts";

export interface DivergenceListener {
  /** The code asked for something else than what is recorded; `site` is where, when that is known. */
  diverged(divergence: Divergence, site: CallSite | undefined): void;
}

/** Of what the limit of a history allows, what compensations may record. */
const roomToUndo = 1.25;

export class Commands {
  readonly limits: ExecutionLimits;
  readonly #recorder: Recorder;
  readonly #owner: DivergenceListener;
  #turnLength = 0;

  constructor(limits: ExecutionLimits, recorder: Recorder, owner: DivergenceListener) {
    this.limits = limits;
    this.#recorder = recorder;
    this.#owner = owner;
  }

  get replaying(): boolean {
    return this.#recorder.replaying;
  }

  /** Whether the replayed turn goes on with such a command. */
  replaysNext(type: Command["type"], effect: EffectId): boolean {
    return this.#recorder.nextIs(type, effect);
  }

  beginTurn(): void {
    this.#turnLength = 0;
  }

  /** Records a command, or finds it in the replayed turn; what is returned is what counts. */
  record<C extends Command>(command: C, site?: CallSite): C {
    const recorded = this.#recorder.command(command, site);
    const { divergence } = this.#recorder;
    if (divergence !== undefined) this.#owner.diverged(divergence, site);
    return recorded;
  }

  /** Whether a change to the code applies here. */
  patched(change: string): boolean {
    return this.#recorder.patched(change);
  }

  /** Throws `PayloadError`, TURN_TOO_LARGE or HISTORY_TOO_LONG. */
  encode(value: unknown, what: string): Payload {
    const payload = encodePayload(value, { limit: this.limits.payload, what });
    this.count(payload);
    return payload;
  }

  /**
   * The recorded form of an input: what its schema makes of it, and the digest of what the code passed. A replay that meets its digest again neither
   * parses nor encodes (a schema may fill in the time of day); any other does, so that it fails as it did.
   */
  input(effect: EffectId, schema: Schema | undefined, given: unknown, what: string): { input: Payload; digest: string } {
    const key = digest(given);
    const recorded = this.#recorder.inputOf(effect, key);
    if (recorded === undefined) return { input: this.encode(parse(schema, given, what), what), digest: key };
    this.count(recorded);
    return { input: recorded, digest: key };
  }

  /** Throws when the run has no room for another effect. What undoes may go beyond the limit that others stop at. */
  checkHistory(undoing: boolean): void {
    if (this.#recorder.position >= this.limits.history * (undoing ? roomToUndo : 1))
      throw new WovyrError(
        `This run has recorded ${this.limits.history} events, the limit. Let it continue as new (ctx.continueAsNew), or split its work into children.`,
        {
          code: "HISTORY_TOO_LONG",
        },
      );
  }

  /** Counts what a turn records; what does not fit is refused and not counted. */
  count(payload: Payload): void {
    const length = this.#turnLength + payload.length;
    if (length > this.limits.turn)
      throw new WovyrError(
        `One turn would record more than ${this.limits.turn} characters. Start fewer effects at once, or pass references instead of large values.`,
        { code: "TURN_TOO_LARGE" },
      );
    this.#turnLength = length;
  }
}
