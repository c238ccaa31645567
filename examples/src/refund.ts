/** Pattern matching with ts-pattern: over the winner of a race, and over the errors that an activity may fail with. */
import { activity, awaitEvent, duration, event, race, settled, sleep, Type, workflow } from "@wovyr/sdk";
import { match, P } from "ts-pattern";

export const Verdict = event(
  "refund.verdict",
  Type.Union([
    Type.Object({ kind: Type.Literal("full") }),
    Type.Object({ kind: Type.Literal("partial"), percent: Type.Integer({ minimum: 1, maximum: 99 }) }),
    Type.Object({ kind: Type.Literal("refused"), reason: Type.String() }),
  ]),
);

export class CardExpired extends Error {}
export class AccountClosed extends Error {
  readonly since: Date;
  constructor(since: Date) {
    super(`closed since ${since.toISOString()}`);
    this.since = since;
  }
}

/** Classes that are listed come back as themselves in the workflow, with their fields. */
const payBack = activity(
  "pay-back",
  { errors: [CardExpired, AccountClosed], retry: { maxAttempts: 1 } },
  async ({ card, amount }: { card: string; amount: number }) => {
    if (card === "expired") throw new CardExpired();
    if (card === "closed") throw new AccountClosed(new Date("2025-01-31"));
    return `paid-${amount}`;
  },
);
const sendVoucher = activity("send-voucher", async (amount: number) => `voucher-${amount}`);

const Input = Type.Object({ card: Type.String(), amount: Type.Number(), decideWithin: Type.Optional(Type.String()) });

export const refund = workflow("refund", { input: Input, events: [Verdict] }, async function* ({ card, amount, decideWithin = "2 days" }) {
  const decision = yield* race({ verdict: awaitEvent(Verdict), silence: sleep(duration(decideWithin)) });

  // Every case has to be there: leave one out, and `.exhaustive()` does not compile.
  const due = match(decision)
    .with({ winner: "silence" }, () => amount)
    .with({ winner: "verdict", value: { kind: "full" } }, () => amount)
    .with({ winner: "verdict", value: { kind: "partial", percent: P.select() } }, (percent) => (amount * percent) / 100)
    .with({ winner: "verdict", value: { kind: "refused" } }, () => 0)
    .exhaustive();
  if (due === 0) return "refused";

  const [payment] = yield* settled([payBack({ card, amount: due })]);

  // A case may end in an effect or in a generator: the one that is chosen is yielded.
  return yield* match(payment)
    .with({ reason: { cause: P.instanceOf(CardExpired) } }, () => sendVoucher(due))
    .with({ reason: { cause: P.instanceOf(AccountClosed) } }, async function* ({ reason }) {
      return `no account since ${reason.cause.since.getUTCFullYear()}`;
    })
    .with({ status: "rejected" }, async function* ({ reason }) {
      throw reason;
    })
    .with({ status: "fulfilled" }, async function* ({ value }) {
      return value;
    })
    .exhaustive();
});
