/** The smallest workflow: one step, one result. */
import { activity, workflow } from "@wovyr/sdk";

/** An activity is ordinary code: it may do anything. Its result is recorded, and it is not run again once it is. */
export const greet = activity("greet", async (name: string) => `Hello, ${name}!`);

/** A workflow is an async generator: what it yields is recorded, so that it can go on where it stopped. */
export const hello = workflow("hello", async function* (name: string) {
  const greeting = yield* greet(name);
  return greeting;
});
