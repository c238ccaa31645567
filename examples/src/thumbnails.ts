/** Fan-out: the same work for every item of a list, a few at a time, with a share of failures that is bearable. */
import { activity, map, NonRetryableError, Type, workflow } from "@wovyr/sdk";

const resize = activity("resize", async (image: string) => {
  if (!/\.(png|jpe?g)$/.test(image)) throw new NonRetryableError(`${image} is no image`);
  return image.replace(/\.\w+$/, ".thumb.webp");
});

export const thumbnails = workflow("thumbnails", { input: Type.Array(Type.String()) }, async function* (images) {
  const results = yield* map(images, (image) => resize(image), { concurrency: 4, tolerateFailures: "25%" });
  // With a tolerance each result says how it ended; they come in the order of the items.
  return {
    made: results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    failed: results.flatMap((result, index) => (result.status === "rejected" ? [images[index]] : [])),
  };
});
