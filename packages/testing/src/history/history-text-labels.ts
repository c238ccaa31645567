/**
 * Stable names for what is drawn anew in each run.
 *
 * 1. The same id has the same label everywhere in one text; labels are counted by kind in order of appearance: `run-1`, `message-1`, `uuid-1`.
 * 2. Generated ids are found inside of longer texts, too. Ids that somebody chose are not: they may be any word.
 */

export type IdKind = "run" | "message" | "uuid";

/** What the engine makes: day, time of day, 10 random characters. */
const runId = "\\d\\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\\d|3[01])[0-9a-z]{16}";
const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const generated = new RegExp(`(?<![0-9A-Za-z])(?:(m-${runId})|(${runId})|${uuid})(?![0-9A-Za-z])`, "g");

export class Labels {
  readonly #labels: Readonly<Record<IdKind, Map<string, string>>> = { run: new Map(), message: new Map(), uuid: new Map() };

  /** The label of an id, which need not look like one. */
  of(kind: IdKind, id: string): string {
    const labels = this.#labels[kind];
    const label = labels.get(id) ?? `${kind}-${labels.size + 1}`;
    labels.set(id, label);
    return label;
  }

  /** A text with labels in place of the generated ids in it. */
  in(text: string): string {
    return text.replace(generated, (id: string, message?: string, run?: string) => {
      if (message !== undefined) return this.of("message", id);
      return this.of(run === undefined ? "uuid" : "run", id);
    });
  }
}
