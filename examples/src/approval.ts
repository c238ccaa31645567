/** A person decides: the request waits for an event, reminds every so often, and gives up in the end. */
import { activity, awaitEvent, duration, event, sleep, spawn, TimeoutError, Type, workflow } from "@wovyr/sdk";

export const Decision = event(
  "decision",
  Type.Object({ approved: Type.Boolean(), by: Type.String(), comment: Type.Optional(Type.String()) }),
);

const notify = activity("notify", async (mail: { to: string; subject: string }, ctx) => {
  ctx.log.info(`to ${mail.to}: ${mail.subject}`);
});

const Request = Type.Object({
  what: Type.String(),
  approver: Type.String(),
  remindEvery: Type.Optional(Type.String()),
  expireAfter: Type.Optional(Type.String()),
});

export const approval = workflow(
  "approval",
  { input: Request, events: [Decision], variables: () => ({ reminders: 0 }) },
  async function* ({ what, approver, remindEvery = "1 day", expireAfter = "7 days" }, ctx) {
    yield* notify({ to: approver, subject: `Please decide: ${what}` });

    // A task runs beside the code below and is cancelled with it.
    yield* spawn(async function* () {
      for (;;) {
        yield* sleep(duration(remindEvery));
        ctx.variables.reminders += 1;
        yield* notify({ to: approver, subject: `Reminder ${ctx.variables.reminders}: ${what}` });
      }
    });

    try {
      const { approved, by } = yield* awaitEvent(Decision, { timeout: duration(expireAfter) });
      return { outcome: approved ? "approved" : "rejected", by, reminders: ctx.variables.reminders };
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      return { outcome: "expired", by: undefined, reminders: ctx.variables.reminders };
    }
  },
);
