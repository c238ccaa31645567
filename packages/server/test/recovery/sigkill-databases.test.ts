import { test } from "node:test";
import { killedUnderLoad } from "./sigkill.ts";

test("two databases: killed three times under load, every run, and every child in the other database, ends once and right", (context) =>
  killedUnderLoad(context, "postgres", { kills: 3, databases: 2 }));
