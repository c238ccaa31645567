/** The page of limits says the numbers that the code has. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { defaultLimits, errorCodes, maxAttributes, maxBranches, workerLossLimit } from "@wovyr/sdk/internal";
import { defaultAdmissionLimits } from "../../src/engine/admission.ts";
import { patience } from "../../src/engine/answering.ts";
import { maxForwarded } from "../../src/engine/peer-calls.ts";
import { defaultPublicationRetention } from "../../src/engine/publishing.ts";
import { startKeyLife } from "../../src/engine/start.ts";
import { maxBatch } from "../../src/engine/starting.ts";
import { strikeLimit } from "../../src/engine/strikes.ts";
import { mostTasks } from "../../src/engine/task-queues.ts";
import { maxImports } from "../../src/engine/transfer.ts";
import { openapiDocument } from "../../src/http/openapi.ts";

const page = readFileSync(new URL("../../../../docs/limits.md", import.meta.url), "utf8");
const rows = new Map([...page.matchAll(/^\| (.+?) \| (.+?) \|/gm)].map(([, what = "", bound = ""]) => [what, bound]));

const count = (value: number) => value.toLocaleString("en");
const mebi = (value: number) => `${value / 1_024 ** 2} Mi`;
const time = (milliseconds: number, unit: "s" | "hours" | "days") =>
  `${milliseconds / { s: 1_000, hours: 3_600_000, days: 86_400_000 }[unit]} ${unit}`;

type Range = { readonly minimum: number; readonly maximum: number; readonly default: number };
type Body = { readonly properties: Readonly<Record<string, { readonly maxItems?: number }>> };
const { paths, components } = openapiDocument("") as {
  readonly paths: Readonly<Record<string, { readonly get: { readonly parameters: readonly { name: string; schema: Range }[] } }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Body>> };
};

function pageOf(path: string): string {
  const limit = paths[path]?.get.parameters.find(({ name }) => name === "limit")?.schema;
  assert.ok(limit, path);
  return `${limit.minimum} to ${count(limit.maximum)}, default ${limit.default}`;
}

const most = (schema: string, property: string) => components.schemas[schema]?.properties[property]?.maxItems ?? Number.NaN;

test("the page of limits says the numbers of the code", () => {
  const said: Readonly<Record<string, string>> = {
    "one value: input, output, payload, memo, all attributes, all variables": `${mebi(defaultLimits.payload)}B`,
    "values that one turn records": mebi(defaultLimits.turn),
    "events of one run": count(defaultLimits.history),
    "turns of a run that end the process so": count(strikeLimit),
    "branches of one `all`, `settled`, `any`, `race`, `select` or `map`": count(maxBranches),
    "attributes of an instance": count(maxAttributes),
    "how often an activity is lost with its worker": count(workerLossLimit),
    "how long a publication with a key is kept, and the idempotency key of any": time(defaultPublicationRetention, "days"),
    "how long the idempotency key of a start, a fork, a reset or a batch is known": time(startKeyLife, "hours"),
    "starts of one call": count(maxBatch),
    "runs of one import": count(maxImports),
    "tasks that one poll asks for": `1 to ${count(mostTasks)}`,
    "a call that does not wait, in process as well": time(patience, "s"),
    "calls of a node to others under way": count(maxForwarded),
    "how long the oldest turn waits to be durable": `${count(defaultAdmissionLimits.commitDelay)} ms`,
    "attempts that wait for a place, a limit or a circuit": count(defaultAdmissionLimits.waitingActivities),
    "instances of a page": pageOf("/v1/instances"),
    "events of a page of history": pageOf("/v1/instances/{id}/history"),
    "tasks that the heartbeat of a worker names": count(most("WorkerReport", "tokens")),
    "dead letters that one decision names by `ids`": `1 to ${count(most("DeadLetterFilter", "ids"))}`,
  };
  const wrong = Object.entries(said).filter(([what, bound]) => !begins(rows.get(what), bound));
  assert.deepEqual(
    wrong.map(([what, bound]) => `${what}: the page says "${rows.get(what)}", the code ${bound}`),
    [],
  );
});

/** Whether a cell begins with this, and not with a longer number or unit. */
function begins(cell: string | undefined, bound: string): boolean {
  return cell?.startsWith(bound) === true && !/^[\w.]|^,\d/.test(cell.slice(bound.length));
}

test("the page of limits names codes that there are", () => {
  const codes = [...page.matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g)].map(([, code = ""]) => code);
  assert.deepEqual(
    codes.filter((code) => !Object.hasOwn(errorCodes, code)),
    [],
  );
});
