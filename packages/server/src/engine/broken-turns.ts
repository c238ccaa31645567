/**
 * A turn that cannot be made: one message is to blame, or the run is parked.
 *
 * 1. Until it is known which, the instance is left as it is: at work.
 * 2. A message that is to blame is refused alone, and the run goes on from what is durable with the others.
 * 3. A run whose code cannot go on from what is durable waits for a person, and what reaches it waits with it.
 */
import { failureOf, ReaderChanged } from "@wovyr/sdk/internal";
import type { VoidTurn } from "./diagnosis.ts";
import { updateKey } from "./dialogue.ts";
import type { Engine } from "./engine.ts";
import type { Instance } from "./instance.ts";
import { addedByLoading, type Mail } from "./mail.ts";

export function turnBroke(engine: Engine, instance: Instance, failure: Error, turn: VoidTurn): void {
  if (failure instanceof ReaderChanged) {
    refuse(engine, instance, failure);
    return;
  }
  const { revival } = engine;
  const history = instance.create === undefined ? revival.historyOf(instance.identity) : Promise.resolve([]);
  history
    .then((turns) => revival.diagnose(instance, turns, turn))
    .catch(() => undefined)
    .then((found) => {
      if (instance.phase === "running") park(engine, instance, found ?? failure);
    });
}

function refuse(engine: Engine, instance: Instance, { asked, refusal }: ReaderChanged): void {
  const { identity, mailbox } = instance;
  const at = mailbox.findIndex(({ fact }) => fact.type === "UpdateRequested" && fact.message === asked);
  const [mail] = at < 0 ? [] : mailbox.splice(at, 1);
  if (mail?.receipt !== undefined) mail.receipt.refused(refusal);
  // It was kept while the run was paused; somebody may wait for its end.
  else engine.updates.refuse(updateKey(identity.run, asked), refusal);
  if (mail !== undefined) engine.dropMessages(identity, [mail]);
  if (instance.create === undefined) {
    engine.reload(instance);
    return;
  }
  instance.forget();
  instance.execution = instance.newExecution();
  instance.phase = "idle";
  engine.queue(instance);
}

function park(engine: Engine, instance: Instance, failure: Error): void {
  const { workflow, id, run } = instance.identity;
  engine.options.log.error(`the run is parked: ${failure.message}`, { workflow, instance: id, run });
  const parked: Mail = { fact: { type: "Parked", failure: failureOf(failure) } };
  if (instance.create !== undefined) {
    instance.forget();
    instance.mailbox.unshift(parked);
    instance.phase = "idle";
    engine.queue(instance);
    return;
  }
  // What loading a run adds by itself is not kept: a second chance that was wasted above all.
  instance.mailbox = [parked, ...instance.mailbox.filter(({ fact }) => !addedByLoading.has(fact.type))];
  engine.reload(instance);
}
