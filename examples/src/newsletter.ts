/**
 * Mail for many customers by a service that allows little: five at once, ten a minute, and one customer's campaign is not to hold up a password reset.
 */
import { activity, map, workflow } from "@wovyr/sdk";

export type Mail = { readonly to: string; readonly subject: string };

/** What the mail service was told, and when. */
export const sent: { readonly mail: Mail; readonly at: number }[] = [];
/** The clock of the mail service. */
export const service = { now: () => Date.now() };

export const deliver = activity(
  "deliver",
  { concurrency: { limit: 5, scope: "mail-service" }, rateLimit: { limit: 10, per: "1m", scope: "mail-service" } },
  async (mail: Mail) => {
    sent.push({ mail, at: service.now() });
  },
);

/** A backlog: nobody is waiting for it. */
export const campaign = workflow("campaign", { priority: "low" }, async function* (mails: Mail[]) {
  yield* map(mails, (mail) => deliver(mail), { concurrency: 50 });
  return mails.length;
});

/** Somebody is waiting for it. */
export const passwordReset = workflow("passwordReset", { priority: "critical" }, async function* (to: string) {
  yield* deliver({ to, subject: "Your new password" });
});

export type Customer = { readonly id: string; readonly email: string };

/** However often a customer's data change in a row, they are written once, as they are in the end. */
export const syncCustomer = workflow(
  "syncCustomer",
  { debounce: { key: ({ id }: Customer) => id, period: "5s", maxWait: "1m" } },
  async function* ({ email }: Customer) {
    yield* deliver({ to: email, subject: "Your data have changed" });
    return email;
  },
);
