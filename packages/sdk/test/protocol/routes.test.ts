import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCodes } from "../../src/model/errors.ts";
import type { ClosedStatus } from "../../src/model/history.ts";
import { pathOf, type Route, routes } from "../../src/protocol/routes.ts";
import { closedStatuses, isClosed, isClosingEvent, statuses } from "../../src/protocol/status.ts";
import { taskRoutes } from "../../src/protocol/task-routes.ts";

test("no two routes answer the same request", () => {
  const seen = new Set<string>();
  for (const route of Object.values<Route>(routes)) {
    const request = `${route.method} ${route.path.replaceAll(/\{\w+\}/g, "{}")}`;
    assert.ok(!seen.has(request), request);
    seen.add(request);
  }
});

test("what changes something is a POST, takes an idempotency key and a strict body", () => {
  for (const [operationId, route] of Object.entries<Route>(routes)) {
    // A query is a POST for the sake of its body; it changes nothing. A published event and an imported run name themselves; an event may have extensions.
    const own = operationId === "publishEvent" || operationId === "importInstances";
    // What workers say is named by the token of their task.
    const named = own || operationId in taskRoutes;
    assert.equal(route.method === "POST" && operationId !== "queryInstance" && !named, route.changes === true, operationId);
    if (route.body && !own) assert.equal(route.body.schema.additionalProperties, false, operationId);
  }
});

test("every route says which errors it answers with, and what it answers else", () => {
  for (const [operationId, route] of Object.entries<Route>(routes)) {
    for (const code of route.errors) assert.ok(code in errorCodes, `${operationId} ${code}`);
    assert.ok(Object.keys(route.answers).length > 0, operationId);
    const missing = route.path.startsWith("/v1/batches") ? "BATCH_NOT_FOUND" : "INSTANCE_NOT_FOUND";
    if (route.path.includes("{id}")) assert.ok(route.errors.includes(missing), operationId);
  }
});

test("a path is filled in with names", () => {
  assert.equal(
    pathOf(routes.sendEvent, { id: "order:42@eu", name: "payment.received" }),
    "/v1/instances/order:42@eu/events/payment.received",
  );
  assert.equal(pathOf(routes.live, {}), "/health/live");
});

test("a run's last event names the status that it closed with", () => {
  for (const status of closedStatuses satisfies readonly ClosedStatus[]) {
    assert.ok(isClosed(status));
    assert.ok(isClosingEvent(`Instance${status}`));
  }
  assert.equal(statuses.filter((status) => !isClosed(status)).length, 8);
  assert.ok(!isClosingEvent("InstanceStarted"));
  assert.ok(!isClosingEvent("ActivityCompleted"));
});
