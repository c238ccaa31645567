/** Notes what no program should cause: rejections that nobody handles, and warnings of the process. Listens once, however many look on. */
const onlookers = new Set<ProcessTrouble>();

const rejected = (reason: unknown) => tell(`unhandled rejection: ${String(reason)}`);
const warned = (warning: Error) => {
  if (warning.name !== "ExperimentalWarning") tell(`warning: ${warning.name}: ${warning.message}`);
};

function tell(line: string): void {
  for (const onlooker of onlookers) onlooker.seen.push(line);
}

export class ProcessTrouble {
  readonly seen: string[] = [];

  constructor() {
    if (onlookers.size === 0) {
      process.on("unhandledRejection", rejected);
      process.on("warning", warned);
    }
    onlookers.add(this);
  }

  stop(): void {
    onlookers.delete(this);
    if (onlookers.size > 0) return;
    process.off("unhandledRejection", rejected);
    process.off("warning", warned);
  }
}
