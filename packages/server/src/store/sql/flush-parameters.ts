/**
 * A flush as the parameters of `wovyr.commit_1`, whose file describes them.
 *
 * 1. First turns come before the others; `order` tells which place is which turn.
 * 2. Turns whose shard is not in the fence are left out: they are refused without asking.
 */

import { createHash } from "node:crypto";
import type { Flush, InboxMessage, NewInstance, TurnWrite } from "../../engine/ports/store.ts";
import { isClosing } from "../flush-parts.ts";
import { lastPerEffect } from "../last-per-effect.ts";
import { isStorable, UnstorableTextError } from "../storable.ts";
import { encodeAttributes } from "./attribute-text.ts";
import { DeadLetterColumns } from "./dead-letter-columns.ts";
import type { SqlValue } from "./driver.ts";
import { EffectColumns } from "./effect-columns.ts";
import { arrayLiteral, TextList } from "./text-list.ts";
import { WaitColumns } from "./wait-columns.ts";

export type FlushParameters = {
  /** The turns by their place, from 0 on. */
  readonly order: readonly TurnWrite[];
  /** Runs of children by their place, from 0 on. */
  readonly children: readonly string[];
  readonly values: readonly SqlValue[];
};

/** What stands for a start key in the database. */
export function startSlot(workflow: string, key: string): string {
  if (!isStorable(key)) throw new UnstorableTextError("startKey.key");
  return createHash("sha256").update(`${workflow}\u001f${key}`).digest("base64url");
}

export function flushParameters(flush: Flush): FlushParameters {
  const epochs = new Map(flush.fence.map(({ shard, epoch }) => [shard, epoch]));
  const admitted = flush.turns.filter((turn) => epochs.has(turn.shard) && (turn.create === undefined || turn.tail === 0));
  const first = admitted.filter((turn) => turn.create !== undefined);
  const order = [...first, ...admitted.filter((turn) => turn.create === undefined)];
  const turns = new TurnColumns();
  const creates = new InstanceColumns();
  const fence = new Set<number>();
  for (const turn of order) {
    fence.add(turn.shard);
    turns.add(turn);
    if (turn.create !== undefined) creates.add(turn.create);
  }
  // Parts keep the order of the flush: earlier turns come first to a contested id, and their messages first to an inbox.
  const places = placesOf(admitted, first.length);
  const parts = new PartColumns();
  for (const [at, turn] of admitted.entries()) parts.add(turn, places[at] as number);
  for (const [at, turn] of admitted.entries()) parts.addSends(turn, places[at] as number);
  const shards = [...fence].sort((a, b) => a - b);
  return {
    order,
    children: parts.childRuns,
    values: [
      first.length,
      order.length,
      arrayLiteral(shards),
      arrayLiteral(shards.map((shard) => epochs.get(shard) as number)),
      ...turns.values(),
      ...creates.values(),
      ...parts.values(),
    ],
  };
}

/** Where each turn stands, from 1 on, when first turns come first. */
function placesOf(turns: readonly TurnWrite[], firsts: number): readonly number[] {
  let created = 0;
  let updated = firsts;
  return turns.map((turn) => {
    if (turn.create === undefined) {
      updated += 1;
      return updated;
    }
    created += 1;
    return created;
  });
}

/** `turn_tenants` … `turn_events`. */
class TurnColumns {
  readonly #tenants = new TextList();
  readonly #runs = new TextList();
  readonly #shards: number[] = [];
  readonly #tails: number[] = [];
  readonly #counts: number[] = [];
  readonly #ats: number[] = [];
  readonly #nodes = new TextList();
  readonly #nonces = new TextList();
  readonly #statuses = new TextList();
  readonly #busy: boolean[] = [];
  readonly #events = new TextList();

  add(turn: TurnWrite): void {
    this.#tenants.add(turn.tenant);
    this.#runs.add(turn.run);
    this.#shards.push(turn.shard);
    this.#tails.push(turn.tail);
    this.#counts.push(turn.count);
    this.#ats.push(turn.at);
    this.#nodes.add(turn.node);
    this.#nonces.add(turn.nonce);
    this.#statuses.add(turn.status);
    this.#busy.push(turn.busy && !isClosing(turn));
    this.#events.add(turn.events);
  }

  values(): SqlValue[] {
    return [
      this.#tenants.toParameter(),
      this.#runs.toParameter(),
      arrayLiteral(this.#shards),
      arrayLiteral(this.#tails),
      arrayLiteral(this.#counts),
      arrayLiteral(this.#ats),
      this.#nodes.toParameter(),
      this.#nonces.toParameter(),
      this.#statuses.toParameter(),
      arrayLiteral(this.#busy),
      this.#events.toParameter(),
    ];
  }
}

/** `create_ids` … `create_digests`, and the same of children. */
class InstanceColumns {
  readonly #ids = new TextList();
  readonly #workflows = new TextList();
  readonly #versions = new TextList();
  readonly #parents = new TextList();
  readonly #correlations = new TextList();
  readonly #slots = new TextList();
  readonly #digests = new TextList();
  #count = 0;
  #keys = false;

  add(instance: NewInstance): void {
    const { startKey } = instance;
    this.#count += 1;
    this.#ids.add(instance.id);
    this.#workflows.add(instance.workflow);
    this.#versions.add(instance.version);
    this.#parents.add(instance.parent === undefined ? "" : JSON.stringify(instance.parent));
    this.#correlations.add(instance.correlationId ?? "");
    if (startKey !== undefined) this.#keys = true;
    this.#slots.add(startKey === undefined ? "" : startSlot(instance.workflow, startKey.key));
    this.#digests.add(startKey?.digest ?? "");
  }

  values(): SqlValue[] {
    if (this.#count === 0) return [null, null, null, null, null, null, null];
    return [
      this.#ids.toParameter(),
      this.#workflows.toParameter(),
      this.#versions.toParameter(),
      this.#parents.toParameter(),
      this.#correlations.toParameter(),
      this.#keys ? this.#slots.toParameter() : null,
      this.#keys ? this.#digests.toParameter() : null,
    ];
  }
}

/** `closings` … `letter_done_effects`. */
class PartColumns {
  readonly childRuns: string[] = [];
  readonly #closings: number[] = [];
  readonly #childTurns: number[] = [];
  readonly #childRunList = new TextList();
  readonly #childShards: number[] = [];
  readonly #childInstances = new InstanceColumns();
  readonly #timerTurns: number[] = [];
  readonly #timerEffects = new TextList();
  readonly #timerDues: number[] = [];
  readonly #doneTurns: number[] = [];
  readonly #doneEffects = new TextList();
  readonly #attributeTurns: number[] = [];
  readonly #attributeValues = new TextList();
  readonly #messageTurns: number[] = [];
  readonly #messageChildren: number[] = [];
  readonly #messageTenants = new TextList();
  readonly #messageRuns = new TextList();
  readonly #messageShards: number[] = [];
  readonly #messageIds = new TextList();
  readonly #messageFacts = new TextList();
  readonly #consumedTurns: number[] = [];
  readonly #consumedIds = new TextList();
  readonly #waits = new WaitColumns();
  readonly #waitsDone = new EffectColumns();
  readonly #letters = new DeadLetterColumns();
  readonly #lettersDone = new EffectColumns();

  add(turn: TurnWrite, place: number): void {
    if (isClosing(turn)) this.#closings.push(place);
    else {
      this.#addTimers(turn, place);
      this.#waits.add(turn, place);
      this.#waitsDone.add(turn.waitsDone, place);
    }
    this.#letters.add(turn, place);
    this.#lettersDone.add(turn.deadLettersDone, place);
    if (turn.attributes !== undefined) {
      this.#attributeTurns.push(place);
      this.#attributeValues.add(Object.keys(turn.attributes).length === 0 ? "" : encodeAttributes(turn.attributes));
    }
    for (const child of turn.children) {
      this.#childTurns.push(place);
      this.#childRunList.add(child.run);
      this.#childShards.push(child.shard);
      this.#childInstances.add(child.instance);
      this.childRuns.push(child.run);
      this.#addMessage(child.start, place, this.childRuns.length);
      this.#addMessage(child.rejection, place, -this.childRuns.length);
    }
    for (const message of turn.consumed) {
      this.#consumedTurns.push(place);
      this.#consumedIds.add(message);
    }
  }

  /** After all children's messages, so that every provider posts in the same order. */
  addSends(turn: TurnWrite, place: number): void {
    for (const message of turn.sends) this.#addMessage(message, place, 0);
  }

  values(): SqlValue[] {
    return [
      arrayLiteral(this.#closings),
      this.childRuns.length,
      arrayLiteral(this.#childTurns),
      this.#childRunList.toParameter(),
      arrayLiteral(this.#childShards),
      ...this.#childInstances.values(),
      this.#timerTurns.length,
      arrayLiteral(this.#timerTurns),
      this.#timerEffects.toParameter(),
      arrayLiteral(this.#timerDues),
      this.#doneTurns.length,
      arrayLiteral(this.#doneTurns),
      this.#doneEffects.toParameter(),
      this.#attributeTurns.length,
      arrayLiteral(this.#attributeTurns),
      this.#attributeValues.toParameter(),
      this.#messageTurns.length,
      arrayLiteral(this.#messageTurns),
      arrayLiteral(this.#messageChildren),
      this.#messageTenants.toParameter(),
      this.#messageRuns.toParameter(),
      arrayLiteral(this.#messageShards),
      this.#messageIds.toParameter(),
      this.#messageFacts.toParameter(),
      this.#consumedTurns.length,
      arrayLiteral(this.#consumedTurns),
      this.#consumedIds.toParameter(),
      ...this.#waits.values(),
      ...this.#waitsDone.values(),
      ...this.#letters.values(),
      ...this.#lettersDone.values(),
    ];
  }

  #addTimers(turn: TurnWrite, place: number): void {
    for (const effect of turn.timersDone) {
      this.#doneTurns.push(place);
      this.#doneEffects.add(effect);
    }
    for (const timer of lastPerEffect(turn.timers)) {
      this.#timerTurns.push(place);
      this.#timerEffects.add(timer.effect);
      this.#timerDues.push(timer.due);
    }
  }

  #addMessage(message: InboxMessage, place: number, child: number): void {
    this.#messageTurns.push(place);
    this.#messageChildren.push(child);
    this.#messageTenants.add(message.tenant);
    this.#messageRuns.add(message.run);
    this.#messageShards.push(message.shard);
    this.#messageIds.add(message.message);
    this.#messageFacts.add(message.fact);
  }
}
