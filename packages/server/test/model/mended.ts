/**
 * Bugs of the engine that these tests have found, each `false` until it is mended: `known.test.ts` shows it, and what would meet it is left out.
 *
 * 1. Once all are true, this file and what asks it can go.
 */
export const mended = {
  /** A fiber that is cancelled by what it has just begun gets its CancelledError. Lets programs cancel the tasks that they run in. */
  selfCancel: false,
  /** A task that is dropped with its generator ends for those who join it. Lets branches see each other's tasks. */
  droppedTasks: false,
  /** A suspect that is cancelled in the turn that begins its attempt makes way. Lets attempts be lost more than once. */
  suspects: false,
};
