import { test } from "node:test";
import { killedUnderLoad } from "./sigkill.ts";

test("H057 pglite: killed twenty times under load, every run ends once and right", (context) => killedUnderLoad(context, "pglite"));
