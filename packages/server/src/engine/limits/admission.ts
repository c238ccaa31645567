/** The limit on how many runs of a workflow are at work at once, as it is recorded with a start. */
import { type Admission, type Concurrency, decodePayload, failureOf, keyOf, type Payload } from "@wovyr/sdk/internal";

/** What has no scope of its own is a limit of its group of orchestrators. */
export function admissionOf(
  workflow: string,
  { limit: capacity, onLimit, scope, key }: Concurrency,
  input: Payload,
  group: string,
): Admission {
  const of = scope ?? workflow;
  const place = scope === undefined ? ["workflow", group, workflow] : ["runs", scope];
  if (key === undefined) return { name: JSON.stringify(place), of, capacity, onLimit };
  try {
    const made = keyOf(key, decodePayload(input), `concurrency.key of workflow "${workflow}"`);
    return { name: JSON.stringify([...place, made]), of, key: made, capacity, onLimit };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}
