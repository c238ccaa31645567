/**
 * Word between nodes of what one of them would else find only when it looks the next time.
 *
 * 1. What this node has made durable for shards of others is told them afterwards: many shards at once, `gathering` milliseconds after the first.
 * 2. So is it when this node has come, is about to leave, or has given up shards: the others look who owns what.
 * 3. What others tell of shards that are this node's leads to a look at what is new in their inboxes.
 * 4. Nothing depends on it: every node looks by itself as well.
 */
import type { Engine } from "./engine.ts";
import type { Arrival } from "./ports/databases.ts";
import type { RunAddress } from "./ports/store.ts";

const gathering = 5;

export class WakeUps {
  readonly #engine: Engine;
  readonly #untold = new Set<number>();
  #cancel = () => {};
  #stopListening = () => {};
  #stopReceiving = () => {};
  /** How this node stood among the others when that was told last. */
  #standing = "";
  #stood = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
    engine.ownership.members.listen(() => this.#compare());
  }

  start(): void {
    this.stop();
    this.#stopListening = this.#engine.options.store.hints?.listen((shards) => this.#hear(shards)) ?? (() => {});
    this.#stopReceiving = this.#engine.options.store.databases?.listen((arrivals) => this.#receive(arrivals)) ?? (() => {});
  }

  stop(): void {
    this.#stopListening();
    this.#stopReceiving();
    this.#cancel();
    this.#untold.clear();
  }

  /** This node has left. */
  left(): void {
    this.#engine.options.store.hints?.tell(undefined);
  }

  /** Something for these shards is durable. Those of this node are not meant. */
  tell(shards: Iterable<number>): void {
    const { placement, options } = this.#engine;
    if (options.store.hints === undefined) return;
    const before = this.#untold.size;
    for (const shard of shards) if (placement.of(shard).kind !== "here") this.#untold.add(shard);
    if (before > 0 || this.#untold.size === 0) return;
    this.#cancel = options.clock.wakeAt(options.clock.now() + gathering, () => {
      const told = [...this.#untold];
      this.#untold.clear();
      options.store.hints?.tell(told);
    });
  }

  /** Something for a run is durable in its inbox: whoever owns it is to look. */
  arrived(key: RunAddress & { readonly shard: number }): void {
    const { shard } = key;
    if (this.#engine.placement.of(shard).kind === "here") this.#engine.inbox.deliver(key);
    else this.tell([shard]);
  }

  /** What came from another database. */
  #receive(arrivals: readonly Arrival[]): void {
    const { closed, options } = this.#engine;
    if (closed) return;
    for (const arrival of arrivals) {
      if (arrival.message === undefined) this.arrived(arrival);
      else
        this.#engine
          .deliverOwned(arrival)
          .catch((error) => options.log.warn("a message from another database waits in the inbox of its run", { error }));
    }
  }

  /** Whether something is free for others now, or to be given by them. */
  #compare(): void {
    const { self, alone } = this.#engine.ownership.members;
    if (self === undefined) return;
    const { draining, url = "", shards } = self;
    const standing = JSON.stringify([draining, url]);
    const isNews = standing !== this.#standing || shards.length < this.#stood;
    this.#standing = standing;
    this.#stood = shards.length;
    if (isNews && !alone) this.#engine.options.store.hints?.tell(undefined);
  }

  #hear(shards: readonly number[] | undefined): void {
    const { ownership, inbox, closed } = this.#engine;
    if (closed) return;
    if (shards === undefined) void ownership.verify();
    else if (shards.some((shard) => ownership.owns(shard))) inbox.look();
  }
}
