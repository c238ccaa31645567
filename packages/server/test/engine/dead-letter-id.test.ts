import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, NonRetryableError, workflow } from "@wovyr/sdk";
import { checkName, deadLetterKinds } from "@wovyr/sdk/internal";
import { deadLetterId, placeOfDeadLetter } from "../../src/engine/dead-letter-id.ts";
import { inCase } from "./case.ts";

const effects = ["0", "2.1/0", "~2", "~1#3/0", "@my-name", "@-d-s~", "on:name/3", "u:0/1", "0!retry", "run"];

test("an id is a name, says what it stands for, and is another one for anything else", () => {
  const ids = new Set<string>();
  for (const kind of deadLetterKinds)
    for (const effect of effects)
      for (const run of ["260101000000abcdefghij", "a~b", "x.y:z"])
        for (const attempts of [1, 12]) {
          const id = checkName(deadLetterId({ kind, run, effect, attempts }), "it");
          const place = placeOfDeadLetter(id);
          assert.deepEqual([place?.kind, place?.run, place?.effect, place?.attempts], [kind, run, effect, attempts], id);
          assert.ok(place?.isEffect(effect));
          assert.ok(!place?.isEffect(`${effect}0`));
          ids.add(id);
        }
  assert.equal(ids.size, deadLetterKinds.length * effects.length * 6);
  for (const none of ["a", "x1.0~run", "a1.0", "a.0~run", "a1.~run"]) assert.equal(placeOfDeadLetter(none), undefined, none);
});

test("a long effect id is named by its digest, and decided on all the same", async () => {
  const broken = activity("broken", { onExhausted: "pause" }, async () => Promise.reject(new NonRetryableError("no")));
  const flow = workflow("flow", async function* () {
    return yield* broken().with({ id: "x".repeat(255) });
  });
  await inCase({ workflows: [flow] }, async (env) => {
    const run = await env.start(flow);
    await env.settle();
    const letters = [];
    for await (const letter of env.deadLetters.list()) letters.push(letter);
    const id = letters[0]?.id ?? "";
    assert.ok(id.length < 100);
    assert.equal((await env.deadLetters.get(id)).effect, `@${"x".repeat(255)}`);
    await env.deadLetters.resolve(id, { output: 1 });
    assert.equal(await run.result(), 1);
    await assert.rejects(env.deadLetters.retry(id), { code: "DEAD_LETTER_DECIDED" });
  });
});
