import { test } from "node:test";
import { killedUnderLoad } from "./sigkill.ts";

test("two databases: killed eight times under load, every run, and every child in the other database, ends once and right", (context) =>
  killedUnderLoad(context, "postgres", { kills: 8, databases: 2 }));
