/** How a graph is written: as JSON, or as text of Mermaid. */
import { choice } from "./kinds.ts";
import type { QueryParameter } from "./query.ts";

export type GraphFormat = "json" | "mermaid";

export const mermaidType = "text/vnd.mermaid";

const formats: readonly GraphFormat[] = ["json", "mermaid"];

export const formatParameter: QueryParameter<GraphFormat> = {
  schema: choice(formats),
  description: `How the graph is written. Default: \`mermaid\` where \`Accept\` names \`${mermaidType}\`, else \`json\`.`,
  repeats: false,
  read: ([entry]) => {
    const format = formats.find((known) => known === entry?.[1]);
    if (format === undefined) throw new RangeError(`must be one of ${formats.join(", ")}`);
    return format;
  },
  write: (name, value) => [[name, value]],
};

/** The format that a request asks for: its query first, then its `Accept` header. */
export function graphFormatOf(format: GraphFormat | undefined, accept: string | undefined): GraphFormat {
  return format ?? (accept?.includes(mermaidType) === true ? "mermaid" : "json");
}
