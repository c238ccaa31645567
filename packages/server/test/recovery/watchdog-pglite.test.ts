import { test } from "node:test";
import { neverYields } from "./watchdog.ts";

for (const where of ["first turn", "later turn"] as const)
  test(`H043 pglite: a workflow that never yields in its ${where} ends its process three times and is parked`, (context) =>
    neverYields(context, "pglite", where));
