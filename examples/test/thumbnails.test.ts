import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestEnvironment } from "@wovyr/testing";
import { thumbnails } from "../src/thumbnails.ts";

const workflows = [thumbnails];

test("every image becomes a thumbnail, in order", async () => {
  await using env = await createTestEnvironment({ workflows });
  const names = Array.from({ length: 50 }, (_, index) => `image-${index}`);
  const result = await env.execute(
    thumbnails,
    names.map((name) => `${name}.png`),
  );
  assert.deepEqual(result, { made: names.map((name) => `${name}.thumb.webp`), failed: [] });
});

test("a quarter may fail", async () => {
  await using env = await createTestEnvironment({ workflows });
  assert.deepEqual(await env.execute(thumbnails, ["a.png", "b.txt", "c.jpg", "d.jpeg"]), {
    made: ["a.thumb.webp", "c.thumb.webp", "d.thumb.webp"],
    failed: ["b.txt"],
  });
});

test("more may not", async () => {
  await using env = await createTestEnvironment({ workflows });
  await assert.rejects(env.execute(thumbnails, ["a.png", "b.txt", "c.txt"]), { name: "WorkflowError", status: "Failed" });
});
