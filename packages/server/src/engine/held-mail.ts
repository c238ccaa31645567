/**
 * What arrives for a run whose code cannot be run: it is kept in the run's durable inbox until that can.
 *
 * 1. Whoever sent it is told that it is done when it is durable.
 * 2. What comes again by itself is not kept.
 * 3. Such a run answers nothing for now: updates are turned away.
 * 4. Who delivers the inbox of a run waits first for what is on its way into it.
 * 5. What is said to a run that may end its process is brought there before it is said.
 */
import { ApiError } from "@wovyr/sdk";
import { CancelledError, type Incoming } from "@wovyr/sdk/internal";
import type { Engine } from "./engine.ts";
import type { Instance } from "./instance.ts";
import { comesAgain, type Mail, mailIdentity } from "./mail.ts";
import type { RunAddress } from "./ports/store.ts";
import { versionMissing } from "./version-missing.ts";

export class HeldMail {
  readonly #engine: Engine;
  /** What is on its way into inboxes, by run. */
  readonly #posts = new Map<string, Set<Promise<void>>>();
  readonly #securing = new Set<string>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  keep(instance: Instance, held: readonly Mail[]): void {
    if (held.length === 0) return;
    const { run } = instance.identity;
    const unanswered = held.filter(({ fact }) => fact.type === "UpdateRequested");
    for (const { receipt } of unanswered) receipt?.refused(parkedNow(instance));
    for (const { fact } of held)
      if (fact.type === "AttemptStarted") this.#engine.dispatch.stop(run, fact.effect, new CancelledError("the run takes no step now"));
    // What came from the inbox stays there.
    const kept = held.filter((mail) => mail.inbox === undefined && !comesAgain.has(mail.fact.type) && !unanswered.includes(mail));
    if (kept.length > 0) this.#track(run, this.#post(instance, kept));
  }

  /** What is to be delivered to a run once it is in its inbox; if that cannot be, it is delivered all the same. */
  async secured(key: RunAddress & { readonly shard: number }, fact: Incoming): Promise<Mail> {
    const message = mailIdentity(fact);
    const place = securingKey(key.run, message);
    this.#securing.add(place);
    try {
      await this.#engine.options.store.post([await this.#message(key, fact)]);
      return { fact, inbox: message };
    } catch (error) {
      this.#engine.options.log.warn("what a run is told could not be kept for it first", { run: key.run, error });
      return { fact };
    } finally {
      this.#securing.delete(place);
    }
  }

  isSecuring(run: string, message: string): boolean {
    return this.#securing.has(securingKey(run, message));
  }

  /** Resolves when everything that is on its way into the inbox of a run is there, or came to nothing. */
  async settled(run: string): Promise<void> {
    for (let posts = this.#posts.get(run); posts !== undefined; posts = this.#posts.get(run)) await Promise.all(posts);
  }

  async #message({ tenant, run, shard }: RunAddress & { readonly shard: number }, fact: Incoming) {
    return { tenant, run, shard, message: mailIdentity(fact), fact: await this.#engine.rows.encodeFact(fact) };
  }

  async #post({ identity }: Instance, mail: readonly Mail[]): Promise<void> {
    const { options, ownership } = this.#engine;
    try {
      await options.store.post(await Promise.all(mail.map(({ fact }) => this.#message(identity, fact))));
      // Who has the shards now may have delivered the inbox before this was in it.
      if (!ownership.holds) throw new ApiError("This node no longer owns the instance; try again.", { code: "NOT_OWNER" });
      for (const { receipt } of mail) receipt?.accepted(false);
    } catch (error) {
      for (const { receipt } of mail) receipt?.refused(error as Error);
    }
  }

  #track(run: string, post: Promise<void>): void {
    const posts = this.#posts.get(run) ?? new Set();
    this.#posts.set(run, posts.add(post));
    void post.then(() => {
      posts.delete(post);
      if (posts.size === 0) this.#posts.delete(run);
    });
  }
}

const securingKey = (run: string, message: string) => `${run} ${message}`;

/** Why a run answers nothing. */
export function parkedNow({ state, identity }: Instance): ApiError {
  if (state.parked === undefined) return versionMissing(identity);
  return new ApiError(`The run is parked and answers nothing: ${state.parked.message}`, { code: "INSTANCE_PARKED" });
}
