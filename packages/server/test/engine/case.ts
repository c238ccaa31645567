/** One case: an environment, what is done in it, and the checks at its end. */
import {
  checkEndOfCase,
  createTestEnvironment,
  type EndOfCaseOptions,
  type TestEnvironment,
  type TestEnvironmentOptions,
} from "@wovyr/testing";

export type CaseOptions = TestEnvironmentOptions & { readonly end?: EndOfCaseOptions };

export async function inCase<T>({ end, ...options }: CaseOptions, body: (env: TestEnvironment) => Promise<T>): Promise<T> {
  await using env = await createTestEnvironment(options);
  const value = await body(env);
  await checkEndOfCase(env, end);
  return value;
}

/** The same case with everything cached, and with every turn made after a replay from history. */
export async function inEachCache(options: CaseOptions, body: (env: TestEnvironment) => Promise<void>): Promise<void> {
  await inCase(options, body);
  await inCase({ ...options, evictAlways: true }, body);
}

/** Lets everything happen that needs no time, where a call that is held keeps `env.settle()` waiting. */
export async function macrotasks(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
