/** What is said on stderr when a process ends although somebody waits: the loop of the process is empty, so nothing in it can end the wait. */

export interface Speaker {
  /** What is waited for, and why it cannot come. */
  readonly lastWords: string;
}

const speakers = new Set<Speaker>();

/** From now on it has something to say, or no longer. */
export function speaks(speaker: Speaker, waits: boolean): void {
  if (waits) speakers.add(speaker);
  else speakers.delete(speaker);
}

process.on("beforeExit", () => {
  for (const { lastWords } of speakers) process.stderr.write(`${lastWords}\n`);
  speakers.clear();
});
