import { test } from "node:test";
import { closesUnderLoad } from "./graceful-close.ts";

test("H094 pglite: closing under load loses nothing, counts nothing as lost, and ends in time", (context) =>
  closesUnderLoad(context, "pglite"));
