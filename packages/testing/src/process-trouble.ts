/** Notes what no program should cause: rejections that nobody handles, and warnings of the process. */
export class ProcessTrouble {
  readonly seen: string[] = [];
  readonly #rejected = (reason: unknown) => {
    this.seen.push(`unhandled rejection: ${String(reason)}`);
  };
  readonly #warned = (warning: Error) => {
    if (warning.name !== "ExperimentalWarning") this.seen.push(`warning: ${warning.name}: ${warning.message}`);
  };

  constructor() {
    process.on("unhandledRejection", this.#rejected);
    process.on("warning", this.#warned);
  }

  stop(): void {
    process.off("unhandledRejection", this.#rejected);
    process.off("warning", this.#warned);
  }
}
