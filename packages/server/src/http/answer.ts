import { encodePayload, headerNames, mediaTypes, toPlainJson, type View } from "@wovyr/sdk/internal";

/** What a handler answers: `value`, to be written in the view that the client asked for, or `text`, written already. */
export type Answer = {
  readonly status: number;
  readonly value?: unknown;
  readonly text?: string;
  /** The content type of `text`; default: that of the view. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** What a handler returns when it has taken over the reply itself. */
export const taken = Symbol("taken");

export const replayedHeader = { [headerNames.replayed]: "true" } as const;

export const contentTypes: Readonly<Record<View, string>> = {
  plain: `${mediaTypes.plain}; charset=utf-8`,
  typed: mediaTypes.typed,
};

/** A value as the text of a body. */
export function bodyText(value: unknown, view: View): string {
  return view === "typed"
    ? encodePayload(value, {
        limit: Number.POSITIVE_INFINITY,
        what: "an answer",
      })
    : JSON.stringify(toPlainJson(value));
}
