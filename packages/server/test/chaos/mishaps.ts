/** What may happen to nodes, networks and the database, one thing after another; each is over before it resolves. */
import { setTimeout as pause } from "node:timers/promises";
import { cutSessions, freeze, thaw } from "@wovyr/testing";
import type { seeded } from "../recovery/seeded.ts";
import { endProcess } from "./errands.ts";
import { type ChaosStage, lease } from "./stage.ts";

type Random = ReturnType<typeof seeded>;

const kinds = {
  /** Its process ends in the middle of whatever it does. */
  async kill({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    await node.host.destroy();
    await pause(random.whole(lease));
    await node.restart();
    return node.name;
  },
  /** It hands over what it has, and comes back. */
  async drain({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    node.host.kill("SIGTERM");
    await node.host.ended;
    await node.restart();
    return node.name;
  },
  async killWorker({ workers }: ChaosStage, random: Random) {
    const worker = anyOf(workers, random);
    await endProcess(worker.process);
    await pause(random.whole(lease));
    await worker.restart();
    return worker.name;
  },
  async freezeWorker({ workers }: ChaosStage, random: Random) {
    const worker = anyOf(workers, random);
    const milliseconds = random.whole(2 * lease) + lease / 2;
    freeze(worker.process.pid as number);
    await pause(milliseconds);
    thaw(worker.process.pid as number);
    return `${worker.name} for ${milliseconds} ms`;
  },
  /** It stands still, mostly for longer than its lease. */
  async freeze({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    const milliseconds = random.whole(2 * lease) + lease / 2;
    freeze(node.host.pid);
    await pause(milliseconds);
    thaw(node.host.pid);
    return `${node.name} for ${milliseconds} ms`;
  },
  /** The database ends every session. */
  async sessions({ postgres }: ChaosStage) {
    return `${await cutSessions(postgres.url)} of them`;
  },
  async fastRestart({ postgres }: ChaosStage) {
    await postgres.restart("fast");
  },
  async immediateRestart({ postgres }: ChaosStage) {
    await postgres.restart("immediate");
  },
  /** Connections of a node break, some of them between a commit and its answer. */
  async reset({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    for (let times = random.whole(5) + 1; times > 0; times -= 1) {
      if (random.fraction() < 0.5) node.network.loseAnswers();
      else node.network.reset();
      await pause(random.whole(200));
    }
    return node.name;
  },
  /** What a node and the database say to each other is swallowed, for longer than its lease now and then. */
  async blackhole({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    const milliseconds = random.whole(1.5 * lease);
    node.network.blackhole();
    await pause(milliseconds);
    node.network.flow();
    return `${node.name} for ${milliseconds} ms`;
  },
  async delay({ nodes }: ChaosStage, random: Random) {
    const node = anyOf(nodes, random);
    const latency = random.whole(200) + 20;
    node.network.delay(latency);
    await pause(2_000);
    node.network.delay(0);
    return `${node.name} by ${latency} ms`;
  },
};

export type MishapKind = keyof typeof kinds;
export const mishapKinds = Object.keys(kinds) as readonly MishapKind[];

/** Resolves with what was done, in words. */
export async function mishap(kind: MishapKind, stage: ChaosStage, random: Random): Promise<string> {
  const what = await kinds[kind](stage, random);
  return what === undefined ? kind : `${kind} ${what}`;
}

function anyOf<T>(all: readonly T[], random: Random): T {
  return all[random.whole(all.length)] as T;
}
