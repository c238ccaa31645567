/** The dead letters of an orchestrator, as a client sees them. */
import { type DeadLetterDecision, deadLetterDecisions } from "../model/dead-letter.ts";
import { instant } from "../model/duration.ts";
import { checkedKey } from "../model/idempotency-key.ts";
import { checkName } from "../model/name.ts";
import { checkOptions, defined, oneOf } from "../model/option.ts";
import { remark } from "../model/remark.ts";
import type { DeadLetterRequest, Operations } from "../protocol/operations.ts";
import type { DeadLetterQuery, DeadLetters, DecisionOptions } from "./client.ts";

export function deadLettersOver(operations: Operations): DeadLetters {
  const decide =
    (decision: DeadLetterDecision) =>
    async (id: string, options: DecisionOptions & { readonly output?: unknown } = {}): Promise<void> => {
      checkName(id, "the id of a dead letter");
      checkOptions(options, decision === "resolve" ? ["note", "idempotencyKey", "output"] : ["note", "idempotencyKey"], decision);
      const { note, idempotencyKey, output } = options;
      await operations.decideDeadLetter(id, decision, {
        ...remark("note", note),
        ...(output !== undefined && { output }),
        ...(idempotencyKey !== undefined && { idempotencyKey: checkedKey(idempotencyKey) }),
      });
    };

  return Object.freeze<DeadLetters>({
    async *list(query = {}) {
      const request = letterRequest(query);
      let page = await operations.listDeadLetters(request);
      for (;;) {
        yield* page.items;
        if (page.nextCursor === undefined) return;
        page = await operations.listDeadLetters({ ...request, cursor: page.nextCursor });
      }
    },

    get: async (id) => operations.getDeadLetter(checkName(id, "the id of a dead letter")),
    retry: decide("retry"),
    resolve: decide("resolve"),
    fail: decide("fail"),
    discard: decide("discard"),

    async decideAll(decision, letters, options = {}) {
      oneOf(decision, deadLetterDecisions, "the decision");
      checkOptions(letters, ["ids", ...filters], "the letters of decideAll");
      checkOptions(options, ["note", "output", "id", "idempotencyKey"], "decideAll");
      const { ids, ...query } = letters;
      const { note, output, id, idempotencyKey } = options;
      const operation = {
        decision,
        letters: { ...letterRequest(query), ...(ids !== undefined && { ids }) },
        ...(output !== undefined && { output }),
        ...remark("note", note),
      };
      const batch = defined({ id, idempotencyKey: idempotencyKey === undefined ? undefined : checkedKey(idempotencyKey) });
      return (await operations.decideDeadLetters(operation, batch)).id;
    },
  });
}

const filters = ["kind", "workflow", "name", "instanceId", "code", "since", "until"];

function letterRequest(query: DeadLetterQuery): DeadLetterRequest {
  checkOptions(query, filters, "a list of dead letters");
  const { workflow, since, until, ...rest } = query;
  const request = {
    ...rest,
    workflow: typeof workflow === "object" ? workflow.name : workflow,
    since: since === undefined ? undefined : new Date(instant(since, "since")),
    until: until === undefined ? undefined : new Date(instant(until, "until")),
  };
  return defined(request);
}
