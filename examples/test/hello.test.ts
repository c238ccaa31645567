import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { hello } from "../src/hello.ts";

test("hello greets whom it is given", async () => {
  await using env = await createTestEnvironment({ workflows: [hello] });
  assert.equal(await env.execute(hello, "Ada"), "Hello, Ada!");
});
