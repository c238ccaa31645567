/** What a test says of the calls that a fake got. An attempt is a call: one that is retried is counted again. */
import { AssertionError } from "node:assert";
import { WovyrError } from "@wovyr/sdk";
import { checkOptions } from "@wovyr/sdk/internal";
import { refuse, shown } from "../checks.ts";
import { valueText } from "../history/history-text-value.ts";
import { matches } from "./match.ts";

/** A fake that keeps the calls that it got. */
export type CalledFake = {
  /** How messages call it. */
  readonly target: string;
  readonly calls: readonly { readonly input: unknown; readonly attempt: number }[];
};

/** Calls that a message lists. */
const listed = 20;

/** The fake was called with an input of the shape (any, when none is given): `times` times, or at least once. */
export function assertCalled(fake: CalledFake, shape?: unknown, options: { readonly times?: number } = {}): void {
  checkFake(fake, "assertCalled()");
  checkOptions(options, ["times"], "assertCalled()");
  const { times } = options;
  if (times !== undefined && !(Number.isSafeInteger(times) && times >= 0))
    throw new WovyrError(`times must be a whole number of at least 0, not ${times}`, { code: "INVALID_OPTION" });
  const fitting = fake.calls.filter(({ input }) => shape === undefined || matches(input, shape)).length;
  if (times === undefined ? fitting > 0 : fitting === times) return;
  const wanted = times === undefined ? "" : ` ${count(times)}`;
  const found = times === undefined ? "" : `, and was so ${count(fitting)}`;
  throw new AssertionError({
    message: `${fake.target} was to be called${wanted}${withShape(shape)}${found}; ${callList(fake)}`,
    ...(times === undefined ? { actual: inputs(fake), expected: [shape] } : { actual: fitting, expected: times }),
    operator: "assertCalled",
    stackStartFn: assertCalled,
  });
}

/** The fake was not called, or not with an input of the shape. */
export function assertNotCalled(fake: CalledFake, shape?: unknown): void {
  checkFake(fake, "assertNotCalled()");
  if (!fake.calls.some(({ input }) => shape === undefined || matches(input, shape))) return;
  throw new AssertionError({
    message: `${fake.target} was not to be called${withShape(shape)}; ${callList(fake)}`,
    actual: inputs(fake),
    expected: [],
    operator: "assertNotCalled",
    stackStartFn: assertNotCalled,
  });
}

function checkFake(fake: unknown, what: string): void {
  const isFake = typeof fake === "object" && fake !== null && Array.isArray((fake as Partial<CalledFake>).calls);
  if (!isFake) refuse(`${what} takes what fake(…) returned, not ${shown(fake)}: only fakes note their calls`);
}

const inputs = ({ calls }: CalledFake) => calls.slice(0, listed).map(({ input }) => input);

const withShape = (shape: unknown) => (shape === undefined ? "" : ` with ${valueText(shape)}`);

const count = (times: number) => (times === 1 ? "once" : `${times} times`);

function callList({ calls }: CalledFake): string {
  if (calls.length === 0) return "there was no call";
  const lines = calls.slice(0, listed).map(({ input, attempt }) => `  ${valueText(input)}${attempt > 1 ? ` (attempt ${attempt})` : ""}`);
  if (calls.length > listed) lines.push(`  and ${calls.length - listed} more`);
  return `${calls.length === 1 ? "the call was" : `the ${calls.length} calls were`}\n${lines.join("\n")}`;
}
