import assert from "node:assert/strict";
import { test } from "node:test";
import type { AnyWorkflow } from "@wovyr/sdk";
import type { EdgeKind } from "@wovyr/sdk/client";
import { staticGraph } from "@wovyr/server";
import { createTestEnvironment } from "@wovyr/testing";
import { approval } from "../src/approval.ts";
import { delivery, PickedUp, plan, progress, waitingFor } from "../src/graph.ts";
import { hello } from "../src/hello.ts";
import { order, ship } from "../src/order.ts";
import { refund } from "../src/refund.ts";
import { thumbnails } from "../src/thumbnails.ts";

test("the picture of a workflow needs no run of it", () => {
  assert.equal(
    plan(),
    `flowchart LR
  n0(["delivery"])
  n1[/"all"\\]
  n2["printLabel"]
  n3["orderPickup"]
  n4[/"race"\\]
  n5>"event PickedUp"]
  n6{{"sleep 2 days"}}
  n7{"winner===#34;late#34;"}
  n8["complain"]
  n9(["end"])
  n0 --> n1
  n1 --> n2
  n1 --> n3
  n2 --> n4
  n3 --> n4
  n4 -->|"done"| n5
  n4 -->|"late"| n6
  n5 --> n7
  n6 --> n7
  n7 -->|"true"| n8
  n8 --> n9
  n7 -->|"false"| n9
`,
  );
});

test("the graph of a run says what it waits for", async () => {
  await using env = await createTestEnvironment({ workflows: [delivery] });
  const run = await env.start(delivery, "p1");
  await env.settle();
  assert.deepEqual(await waitingFor(run), ["event picked-up: Waiting", "timer sleep 2d: Waiting"]);
  await env.send(run.id, PickedUp);
  await run.result();
  assert.deepEqual(await waitingFor(run), []);
  assert.match(await progress(run), /n6\{\{"sleep 2d<br\/>Cancelled"\}\}/);
});

const edgeMarks: Readonly<Partial<Record<EdgeKind, string>>> = { branch: "<", join: ">", loop: "~" };

/** A graph in two lines: its nodes, and its edges as `from→to`, marked by their kinds. */
function snapshotOf(workflow: AnyWorkflow): string[] {
  const { nodes, edges } = staticGraph(workflow);
  return [
    nodes.map(({ kind, name }) => (kind === name ? kind : `${kind} ${name}`)).join(", "),
    edges.map(({ from, to, kind, label }) => `${from}→${to}${edgeMarks[kind] ?? ""}${label === undefined ? "" : ` ${label}`}`).join(", "),
  ];
}

test("the examples' sources say what they do", () => {
  assert.deepEqual([hello, ship, order, approval, refund, thumbnails].map(snapshotOf), [
    ["start hello, activity greet, end", "start→s1, s1→end"],
    ["start ship, activity printLabel, timer sleep parcel.pickup, activity handOver, end", "start→s1, s1→s2, s2→s3, s3→end"],
    [
      `start order, activity reserveStock, try, branches all, activity scoreRisk, activity quoteShipping, choice risk>.8, activity review, branches race, event PaymentReceived, timer sleep patience, choice payment.winner==="late", child ship, activity releaseStock, end`,
      "start→s1, s1→s2, s2→s3, s3→s4<, s3→s5<, s4→s6>, s5→s6>, s6→s7< true, s7→s8, s6→s8< false, s8→s9< received, s8→s10< late, s9→s11>, s10→s11>, s11→s12< false, s2→s13< catch, s11→s13< true, s12→end, s13→end throw",
    ],
    [
      "start approval, activity notify, scope spawn, loop for ever, timer sleep remindEvery, activity notify, try, event Decision, choice !(error instanceof TimeoutError), end",
      "start→s1, s1→s2, s2→s3<, s3→s4<, s4→s5, s5→s3~, s2→s6, s6→s7, s6→s8< catch, s7→end, s8→end< false, s8→end< true, throw",
    ],
    [
      "start refund, branches race, event Verdict, timer sleep decideWithin, choice due===0, branches settled, activity payBack, call match(payment).with({reason:{cause:P.instanceOf(CardExpired…, activity sendVoucher, end",
      "start→s1, s1→s2< verdict, s1→s3< silence, s2→s4>, s3→s4>, s4→s5< false, s5→s6<, s6→s7>, s7→s8<, s4→end< true, s8→end>, s7→end>",
    ],
    ["start thumbnails, branches map images, activity resize, end", "start→s1, s1→s2< each, s2→end>"],
  ]);
});
