/** What the random tests draw from: WOVYR_TEST_SEED and WOVYR_TEST_RUNS override. */
export const seed = Number(process.env.WOVYR_TEST_SEED ?? Date.now() % 1_000_000_000);
export const runs = Number(process.env.WOVYR_TEST_RUNS ?? 2_000);

/** Shrinking a large program may take long: what has been found by then is told. */
export const options = {
  seed,
  numRuns: runs,
  includeErrorInReport: true,
  interruptAfterTimeLimit: 150_000,
  markInterruptAsFailure: true,
} as const;
