/** Branches as one effect, and what `all`, `race`, `any`, `settled`, `map` and `select` make of what they come to. */
import type { Effect } from "./model.ts";
import { closing, Fault, failed, type Operation, type Outcome, ok } from "./outcome.ts";

/** What branches come to: called with each outcome in the order of their arrival, it may decide; `complete` is asked when none has. */
type Rule = { readonly decide: (index: number, outcome: Outcome) => Outcome | undefined; readonly complete: () => Outcome };

/** Branches as one effect: they start in order; when they are decided, the open ones are cancelled, and it settles after the last of them has closed. */
export function group(branches: readonly Effect[], rule: Rule, atOnce = branches.length): Effect {
  return (fiber, makeId, done) => {
    const id = makeId();
    const open = new Map<number, Operation>();
    let next = 0;
    let left = branches.length;
    let decision: Outcome | undefined;
    let starting = false;
    let over = false;
    const closeIfOver = () => {
      if (over || starting || open.size > 0 || (decision === undefined && left > 0)) return;
      over = true;
      done(decision ?? rule.complete());
    };
    const end = (outcome: Outcome, reason: Fault) => {
      decision ??= outcome;
      if (!starting) for (const operation of [...open.values()]) operation.cancel(reason);
    };
    const settled = (index: number, outcome: Outcome) => {
      open.delete(index);
      if (over) return;
      if (decision === undefined) {
        left -= 1;
        const decided = rule.decide(index, outcome);
        if (decided !== undefined) end(decided, closing);
        else if (!starting) fill();
      }
      closeIfOver();
    };
    const fill = () => {
      starting = true;
      for (; decision === undefined && next < branches.length && open.size < atOnce; ) {
        const index = next++;
        let already = false;
        const operation = (branches[index] as Effect)(
          fiber,
          () => `${id}.${index}`,
          (outcome) => {
            already = true;
            settled(index, outcome);
          },
        );
        if (!already) open.set(index, operation);
      }
      starting = false;
      if (decision !== undefined) end(decision, closing);
    };
    fill();
    closeIfOver();
    return {
      cancel: (reason) => {
        if (decision === undefined) end(failed(reason), reason);
        closeIfOver();
      },
      abandon: () => {
        over = true;
        for (const operation of open.values()) operation.abandon();
      },
      undoing: () => [...open.values()].some((operation) => operation.undoing?.() === true),
    };
  };
}

export function rules(size: number) {
  const values = new Array<unknown>(size).fill(undefined);
  const keep = (index: number, value: unknown) => {
    values[index] = value;
    return undefined;
  };
  const won = (index: number, value: unknown) => ok({ winner: index, value });
  const complete = () => ok(values);
  const everyFailed = () => failed(new Fault("AggregateError", `all ${size} branches of any() failed`));
  const all: Rule = { decide: (index, outcome) => (outcome.ok ? keep(index, outcome.value) : outcome), complete };
  const race: Rule = { decide: (index, outcome) => (outcome.ok ? won(index, outcome.value) : outcome), complete };
  const any: Rule = { decide: (index, outcome) => (outcome.ok ? won(index, outcome.value) : undefined), complete: everyFailed };
  const entry = (outcome: Outcome) =>
    outcome.ok ? { status: "fulfilled", value: outcome.value } : { status: "rejected", reason: outcome.fault };
  const settled: Rule = { decide: (index, outcome) => keep(index, entry(outcome)), complete };
  return { all, race, any, settled, map: all, select: race };
}
