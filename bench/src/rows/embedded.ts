/** The throughput rows on the other stores, as information: neither waits for a disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, pgliteStore } from "@wovyr/server";
import type { Family, FamilyContext } from "../family.ts";
import { withOrchestrator } from "../host.ts";
import type { Row } from "../row.ts";
import { measured, throughputRows } from "./throughput.ts";

async function rowsOn(store: ReturnType<typeof memoryStore>, context: FamilyContext): Promise<Row[]> {
  const meter = { ...context, postmaster: undefined };
  const rows = await withOrchestrator({ store }, ({ client }) =>
    throughputRows(client, [measured.oneStep, measured.sequential, measured.fanOut], meter),
  );
  return rows.map(({ against: _, reach: __, ...row }) => row);
}

export const pgliteFamily: Family = {
  name: "pglite",
  title: "Information: PGlite in a directory (no fsync), in process",
  databases: 0,
  deadline: 240,
  async run(context) {
    const directory = mkdtempSync(join(tmpdir(), "wovyr-bench-pglite-"));
    try {
      return await rowsOn(pgliteStore(directory), context);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
};

export const memoryStoreFamily: Family = {
  name: "memory",
  title: "Information: memory store, in process",
  databases: 0,
  deadline: 120,
  run: (context) => rowsOn(memoryStore(), context),
};
