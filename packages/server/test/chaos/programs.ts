/** Random programs of the model-based tests, run by whichever node has them, and their histories compared with the model afterwards. */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "@wovyr/sdk/client";
import { isClosed } from "@wovyr/sdk/internal";
import fc from "fast-check";
import { historyText, ModelledRun } from "../model/history.ts";
import { events, interpreted, type Program, program, programText } from "../model/program.ts";
import type { Ledger } from "../recovery/checks.ts";
import type { seeded } from "../recovery/seeded.ts";

/** Nobody waits for longer, in milliseconds. */
const longest = 2_000;
/** A program is given what it may wait for so many times; then it is ended from outside. */
const rounds = 12;

/** Starts programs one after another and speaks to them; `stop` resolves with the programs once all of them have ended. */
export function runPrograms(
  clients: readonly Client[],
  random: ReturnType<typeof seeded>,
): { stop(): Promise<ReadonlyMap<string, Program>> } {
  const programs = new Map<string, Program>();
  let stopping = false;
  const one = async (id: string, each: Program) => {
    const client = clients[random.whole(clients.length)] as Client;
    const handle = await client.start(interpreted, { part: each, name: id }, { id, idempotencyKey: id });
    for (let round = 0; round < rounds; round += 1) {
      await pause(random.whole(500));
      const { status } = await handle.describe();
      if (isClosed(status)) return;
      await speak(clients[random.whole(clients.length)] as Client, id, random, round);
    }
    await unlessClosed(handle.terminate());
  };
  const all = (async () => {
    const going = new Set<Promise<void>>();
    for (let n = 0; !stopping; n += 1) {
      const [drawn] = fc.sample(program, { seed: random.seed + n, numRuns: 1 }) as [Program];
      const each = shortened(drawn);
      const id = `p${n}`;
      programs.set(id, each);
      const run = one(id, each).finally(() => going.delete(run));
      going.add(run);
      if (going.size >= 20) await Promise.race(going);
      await pause(random.whole(100));
    }
    await Promise.all(going);
    await endChildren(clients[0] as Client);
  })();
  all.catch(() => {});
  return {
    async stop() {
      stopping = true;
      await all;
      return programs;
    },
  };
}

const shortened = (each: Program): Program =>
  JSON.parse(JSON.stringify(each), (key, value) => (key === "ms" && value > longest ? longest : value)) as Program;

async function unlessClosed(call: Promise<unknown>): Promise<void> {
  await call.catch((error: { code?: string }) => {
    if (error.code !== "INSTANCE_CLOSED") throw error;
  });
}

async function speak(client: Client, id: string, random: ReturnType<typeof seeded>, round: number): Promise<void> {
  const handle = client.handle(interpreted, id);
  const draw = random.fraction();
  if (draw < 0.05) await unlessClosed(handle.cancel());
  else if (draw < 0.1) {
    await unlessClosed(handle.pause());
    await unlessClosed(handle.resume());
  } else
    await unlessClosed(
      handle.send(events[draw < 0.55 ? "red" : "blue"], round * 2 + random.whole(2), { idempotencyKey: `${id}-${round}` }),
    );
}

/** Children that outlive their parents wait for what nobody says any more. */
async function endChildren(client: Client): Promise<void> {
  for (let open = 1; open > 0; ) {
    open = 0;
    for await (const run of client.list({ workflow: interpreted.name })) {
      if (isClosed(run.status)) continue;
      open += 1;
      await unlessClosed(client.handle(run.id).terminate());
    }
    if (open > 0) await pause(200);
  }
}

/** Every history is what the language says of what came in, and every run has ended. Returns how many turns that were. */
export function agreesWithModel(programs: ReadonlyMap<string, Program>, { runs, turns }: Ledger): number {
  let compared = 0;
  for (const [id, each] of programs) {
    const root = runs.find((row) => row.id === id);
    assert.ok(root !== undefined, `${id} was acknowledged and is not there`);
    const family = [new ModelledRun(root.run, id)];
    try {
      for (const run of family)
        for (const turn of turns.get(run.run) ?? []) {
          family.push(...run.take(turn));
          compared += 1;
        }
      for (const run of family) assert.ok(run.closed || run.turns.length === 0, `${run.id} has not ended`);
    } catch (error) {
      const story = [`program: ${programText(each)}`, ...family.map(historyText)].join("\n");
      throw new Error(`${(error as Error).message}\n\n${story}`, { cause: error });
    }
  }
  return compared;
}
