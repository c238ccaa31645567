/** The door for applications that start, send and publish in transactions of their own; no orchestrator is needed in their process. */
import { transactionClient } from "./transaction/transaction-client.ts";

export type { DrizzleTransaction, PgClient, PostgresJsTransaction, Transaction } from "./transaction/statement.ts";
export {
  type AskedIn,
  type StartedIn,
  type TransactionClient,
  type TransactionClientOptions,
  transactionClient,
} from "./transaction/transaction-client.ts";

/** For orchestrators with the default group, no codec and the default limits; make a client of your own with `transactionClient` for others. */
export const { startIn, sendIn, publishIn } = transactionClient();
