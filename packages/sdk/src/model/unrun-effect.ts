/** How messages call an effect that was never run. The model knows effects by their shape only. */

/** The method by which an effect describes itself. */
export const described: unique symbol = Symbol.for("wovyr.described");

export type Described = { readonly what: string; readonly at: string | undefined; readonly write: string };

/** What an effect says of itself; undefined for anything else. */
export function describedEffect(value: unknown): Described | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const describe = (value as { readonly [described]?: unknown })[described];
  return typeof describe === "function" ? (describe.call(value) as Described) : undefined;
}

type Named = { readonly name?: unknown } | undefined;
type Shape = {
  readonly kind: string;
  readonly definition?: Named;
  readonly workflow?: Named;
  readonly event?: Named;
  readonly id?: unknown;
};

const makers: Readonly<Record<string, string>> = {
  event: "awaitEvent",
  cancelTask: "task.cancel",
};
const identifier = /^[A-Za-z_$][\w$]*$/;

function nameOf(effect: Shape): string | undefined {
  const name = effect.definition?.name ?? effect.workflow?.name ?? effect.event?.name;
  return typeof name === "string" ? name : undefined;
}

/** `activity "charge"`, `sleep(…)`. */
export function effectText(effect: Shape): string {
  const name = nameOf(effect);
  if (name === undefined) return effect.kind === "task" ? `task ${String(effect.id)}` : callText(effect);
  return `${effect.kind === "event" ? "a wait for event" : effect.kind} "${name}"`;
}

/** What to write to run it: `yield* charge(…)`. */
export function effectHint(effect: Shape): string {
  return effect.kind === "task" ? "yield* task" : `yield* ${callText(effect)}`;
}

function callText(effect: Shape): string {
  const name = nameOf(effect);
  if (effect.kind === "activity") return name !== undefined && identifier.test(name) ? `${name}(…)` : "the call";
  return `${makers[effect.kind] ?? effect.kind}(…)`;
}
