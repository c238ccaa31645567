import { randomBytes } from "node:crypto";
import postgres from "postgres";

export type TestDatabase = {
  readonly url: string;
  /** Runs a statement on a connection of its own kind: not one of the store's. */
  readonly admin: postgres.Sql;
  drop(): Promise<void>;
};

/** A fresh database on the server that `scripts/test.ts` started. */
export async function createDatabase(): Promise<TestDatabase> {
  const server = process.env.WOVYR_TEST_DATABASE_URL;
  if (server === undefined) throw new Error("WOVYR_TEST_DATABASE_URL is not set: run the tests with `npm run test:only`");
  const name = `wovyr_${process.pid}_${randomBytes(6).toString("hex")}`;
  const quiet = { onnotice: () => {}, fetch_types: false };
  const root = postgres(server, { max: 1, ...quiet });
  await root.unsafe(`create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const admin = postgres(url.href, { max: 4, ...quiet });
  return {
    url: url.href,
    admin,
    async drop() {
      await admin.end({ timeout: 1 });
      await root.unsafe(`drop database if exists ${name} with (force)`);
      await root.end({ timeout: 1 });
    },
  };
}
