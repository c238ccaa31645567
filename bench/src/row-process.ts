/** The process of one family of rows: runs it and reports to its parent, without whom it does not live on. */
import { families } from "./families.ts";
import type { FamilyContext, FamilyReport } from "./family.ts";

type Order = FamilyContext & { readonly family: string };

process.on("disconnect", () => process.exit(0));
process.once("message", (order: Order) => void work(order));

async function work({ family, ...context }: Order): Promise<void> {
  try {
    const found = families.find(({ name }) => name === family);
    if (found === undefined) throw new Error(`no family of rows is called ${family}`);
    const rows = await found.run(context);
    report({ rows, peakRss: process.resourceUsage().maxRSS * 1024 });
  } catch (error) {
    report({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

function report(message: FamilyReport | { readonly failure: string }): void {
  process.send?.(message, () => process.disconnect());
}
