import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { WorkflowError } from "@wovyr/sdk";
import { createTestEnvironment, explore } from "@wovyr/testing";
import { agencies, type Service, services } from "../src/agencies.ts";
import { booking, express } from "../src/booking.ts";

beforeEach(() => agencies.reset());

for (const { soldOut, book } of [
  { soldOut: undefined, book: ["reserve flight", "reserve hotel", "reserve car"] },
  { soldOut: "flight", book: [] },
  { soldOut: "hotel", book: ["reserve flight", "release flight"] },
  { soldOut: "car", book: ["reserve flight", "reserve hotel", "release hotel", "release flight"] },
] as const)
  test(`${soldOut ?? "nothing"} is sold out: ${book.join(", ") || "nothing happens"}`, async () => {
    agencies.soldOut = soldOut;
    await using env = await createTestEnvironment({ workflows: [booking] });
    const trip = env.execute(booking, { trip: "rome" });
    if (soldOut === undefined) assert.deepEqual(await trip, ["flight of rome", "hotel of rome", "car of rome"]);
    else
      await assert.rejects(trip, (error) => {
        assert.ok(error instanceof WorkflowError);
        assert.equal(error.status, soldOut === "flight" ? "Failed" : "Compensated");
        assert.match(error.message, new RegExp(`every ${soldOut} is taken`));
        return true;
      });
    assert.deepEqual(agencies.book, book);
    assert.deepEqual(agencies.standing("rome"), soldOut === undefined ? services : []);
  });

for (const workflow of [booking, express])
  for (const soldOut of [undefined, ...services] satisfies (Service | undefined)[])
    test(`${workflow.name}, ${soldOut ?? "nothing"} sold out: all or nothing stands, wherever it crashes`, async () => {
      const explored = await explore(
        workflow,
        { trip: "rome" },
        {
          // Before each case the agencies begin anew.
          fakes: () => {
            agencies.reset();
            agencies.soldOut = soldOut;
            return [];
          },
          cancel: workflow === express,
          interleavings: 60,
          invariant: ({ status }) => assert.deepEqual(agencies.standing("rome"), status === "Completed" ? services : []),
        },
      );
      assert.ok(explored.cases > 60);
    });

test("an agency that does not answer: the trip waits for somebody who decides", async () => {
  agencies.soldOut = "car";
  agencies.closed = "hotel";
  await using env = await createTestEnvironment({ workflows: [booking] });
  const trip = await env.start(booking, { trip: "rome" });
  await env.advance("1 day");
  const { status, compensations } = await trip.describe();
  assert.equal(status, "Compensating");
  assert.deepEqual(
    compensations.map(({ effect, state }) => [effect, state]),
    [
      ["~1", "stuck"],
      ["~0", "pending"],
    ],
  );
  agencies.closed = undefined;
  await trip.retryCompensation("~1", { note: "they are back from lunch" });
  await assert.rejects(trip.result(), { name: "WorkflowError", status: "Compensated" });
  assert.deepEqual(agencies.standing("rome"), []);
});
