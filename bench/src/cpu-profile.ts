/** Reads a CPU profile of V8: self time by function, and by what the function belongs to. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};

export type Share = { readonly name: string; readonly milliseconds: number };

const parts: readonly (readonly [RegExp, string])[] = [
  [/packages\/server\/(src|dist)\/engine\//, "engine"],
  [/packages\/server\/(src|dist)\/store\//, "store driver"],
  [/packages\/server\/(src|dist)\/http\//, "HTTP API"],
  [/packages\/server\/(src|dist)\//, "server, other"],
  [/packages\/sdk\/(src|dist)\/runtime\//, "runtime"],
  [/packages\/sdk\/(src|dist)\/model\//, "model (payloads, digests, states)"],
  [/packages\/sdk\/(src|dist)\/client\//, "client"],
  [/packages\/sdk\/(src|dist)\//, "sdk, other"],
  [/node_modules\/postgres\//, "postgres.js"],
  [/node_modules\/(fastify|@fastify|find-my-way|light-my-request|avvio|pino)/, "fastify"],
  [/node_modules\/devalue\//, "devalue"],
  [/node_modules\//, "other packages"],
  [/^node:/, "node"],
  [/bench\/src\//, "bench"],
];

const idle = new Set(["(idle)", "(root)"]);

/** Milliseconds of self time by function and by part, most first, and of them all; waiting is left out. */
export function sharesOf(profile: CpuProfile): { functions: Share[]; parts: Share[]; total: number } {
  const own = new Map<number, number>();
  for (const [at, id] of profile.samples.entries()) own.set(id, (own.get(id) ?? 0) + (profile.timeDeltas[at] ?? 0) / 1_000);
  const functions = new Map<string, number>();
  const byPart = new Map<string, number>();
  let total = 0;
  for (const { id, callFrame } of profile.nodes) {
    const milliseconds = own.get(id) ?? 0;
    if (milliseconds === 0 || idle.has(callFrame.functionName)) continue;
    const { functionName, url, lineNumber } = callFrame;
    const place = url === "" ? "" : ` ${url.split("/").slice(-3).join("/")}:${lineNumber + 1}`;
    add(functions, `${functionName === "" ? "(anonymous)" : functionName}${place}`, milliseconds);
    add(byPart, partOf(functionName, url), milliseconds);
    total += milliseconds;
  }
  return { functions: sorted(functions), parts: sorted(byPart), total };
}

function partOf(functionName: string, url: string): string {
  if (functionName === "(garbage collector)") return "garbage collection";
  if (functionName === "(program)") return "native code that is no function";
  if (url === "") return "built-in functions";
  return parts.find(([pattern]) => pattern.test(url))?.[1] ?? "other";
}

function add(shares: Map<string, number>, name: string, milliseconds: number): void {
  shares.set(name, (shares.get(name) ?? 0) + milliseconds);
}

function sorted(shares: Map<string, number>): Share[] {
  return [...shares].map(([name, milliseconds]) => ({ name, milliseconds })).sort((a, b) => b.milliseconds - a.milliseconds);
}
