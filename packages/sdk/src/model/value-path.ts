/** Where in a value something lies: `$.charges[0]`. */

/** A key, an index, or a place in a map or set. */
export type Step = string | number | { readonly place: string };

const identifier = /^[A-Za-z_$][\w$]*$/;
const shownSteps = 20;
const shownText = 80;

export function pathText(path: readonly Step[]): string {
  const half = shownSteps / 2;
  const shown: readonly Step[] = path.length <= shownSteps ? path : [...path.slice(0, half), { place: "…" }, ...path.slice(-half)];
  return `$${shown.map(stepText).join("")}`;
}

/** The key of a map's entry as a step to its value. */
export const stepOfKey = (key: unknown, index: number): Step => ({
  place: typeof key === "string" ? JSON.stringify(key) : `value ${index}`,
});

function stepText(step: Step): string {
  if (typeof step === "number") return `[${step}]`;
  if (typeof step === "object") return `<${step.place.slice(0, shownText)}>`;
  return identifier.test(step) ? `.${step.slice(0, shownText)}` : `[${JSON.stringify(step.slice(0, shownText))}]`;
}
