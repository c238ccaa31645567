/** What one turn writes to the store: its events, and the rows that follow from its plan. */
import { ApiError } from "@wovyr/sdk";
import { decodePayload, failureOf, type HistoryFact, type Incoming, type ParentLink } from "@wovyr/sdk/internal";
import type { HistoryRows } from "./history-row.ts";
import type { Instance, OpenTurn } from "./instance.ts";
import { mailIdentity } from "./mail.ts";
import type { Attributes, ChildWrite, InboxMessage, StoredStatus, TurnWrite } from "./ports/store.ts";
import type { Send } from "./turn-plan.ts";

export type TurnWriteContext = {
  readonly rows: HistoryRows;
  readonly node: string;
  readonly nonce: string;
  readonly shardOf: (tenant: string, id: string) => number;
  readonly newSeed: () => string;
};

/** A child that is to be created, with its start fact. */
export type NewChild = {
  readonly write: ChildWrite;
  readonly start: Extract<Incoming, { type: "InstanceStarted" }>;
};

export type PreparedTurn = {
  readonly write: TurnWrite;
  readonly children: readonly NewChild[];
  readonly sends: readonly Send[];
};

/** Synchronous unless a payload codec is at work. */
export function prepareTurn(instance: Instance, turn: OpenTurn, context: TurnWriteContext): PreparedTurn | Promise<PreparedTurn> {
  const { identity } = instance;
  const { plan } = turn;
  const sends = plan.closing === undefined ? plan.sends : [...plan.sends, ...toParent(instance, plan.closing)];
  const starts = [...plan.children.values()].map((child) => childStart(instance, child, context));
  const message = (send: Send, fact: string): InboxMessage => ({
    tenant: identity.tenant,
    run: send.run,
    shard: context.shardOf(identity.tenant, send.id),
    message: send.message,
    fact,
  });
  const finish = (events: string, facts: readonly string[]): PreparedTurn => {
    const children = starts.map((start, index) => childWrite(instance, start, facts[sends.length + index] as string, context));
    return {
      children,
      sends,
      write: {
        tenant: identity.tenant,
        run: identity.run,
        shard: identity.shard,
        ...(instance.create !== undefined && { create: instance.create }),
        tail: turn.tail,
        count: turn.facts.length,
        at: turn.at,
        node: context.node,
        nonce: context.nonce,
        events,
        status: storedStatus(instance),
        busy: !instance.state.closed && instance.state.parked === undefined && instance.state.busy,
        ...(plan.attributesChanged && {
          attributes: searchable(instance.state.attributes),
        }),
        timers: [...plan.timers].map(([effect, due]) => ({ effect, due })),
        timersDone: [...plan.timersDone],
        children: children.map((child) => child.write),
        sends: sends.map((send, index) => message(send, facts[index] as string)),
        consumed: turn.mail.flatMap((mail) => (mail.inbox === undefined ? [] : [mail.inbox])),
      },
    };
  };
  const events = context.rows.encode(turn.facts);
  const outgoing = [...sends.map((send) => send.fact), ...starts.map((start) => start.fact)];
  const facts = outgoing.map((fact) => context.rows.encodeFact(fact));
  if (typeof events === "string" && facts.every((fact) => typeof fact === "string")) return finish(events, facts as string[]);
  return Promise.all([events, Promise.all(facts)]).then(([text, texts]) => finish(text, texts));
}

function storedStatus(instance: Instance): StoredStatus {
  const { outcome, parked } = instance.state;
  if (outcome !== undefined) return outcome.status;
  return parked === undefined ? "open" : "parked";
}

/** The form in which attributes are searched: dates as RFC 3339 text. */
export function searchable(payload: string | undefined): Attributes {
  if (payload === undefined) return {};
  const given = decodePayload(payload) as Record<string, unknown>;
  const entries: [string, string | number | boolean | readonly string[]][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value instanceof Date) entries.push([name, value.toISOString()]);
    else if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") entries.push([name, value]);
    else if (Array.isArray(value)) entries.push([name, value.map(String)]);
  }
  return Object.fromEntries(entries);
}

/** What the parent is told when its child closes. */
function toParent(instance: Instance, closing: HistoryFact): Send[] {
  const { parent } = instance.identity;
  if (parent === undefined) return [];
  return [
    {
      run: parent.run,
      id: parent.id,
      message: `child:${parent.effect}`,
      fact: closedFact(instance, parent, closing),
    },
  ];
}

function closedFact(instance: Instance, parent: ParentLink, closing: HistoryFact): Incoming {
  if (closing.type === "InstanceCompleted")
    return {
      type: "ChildCompleted",
      effect: parent.effect,
      output: closing.output,
    };
  const outcome = instance.state.outcome;
  if (outcome === undefined || outcome.status === "Completed") throw new Error("a closing turn without an outcome");
  return {
    type: "ChildFailed",
    effect: parent.effect,
    status: outcome.status,
    failure: outcome.failure,
  };
}

type ChildStart = {
  readonly started: Extract<HistoryFact, { type: "ChildStarted" }>;
  readonly fact: NewChild["start"];
};

function childStart(instance: Instance, started: ChildStart["started"], context: TurnWriteContext): ChildStart {
  const { tenant, run, id, correlationId } = instance.identity;
  return {
    started,
    fact: {
      type: "InstanceStarted",
      id: started.id,
      workflow: started.workflow,
      version: started.version,
      input: started.input,
      seed: context.newSeed(),
      parent: { tenant, id, run, effect: started.effect },
      correlationId: correlationId ?? id,
    },
  };
}

function childWrite(instance: Instance, { started, fact }: ChildStart, start: string, context: TurnWriteContext): NewChild {
  const { tenant, run, shard } = instance.identity;
  const rejection: Incoming = {
    type: "ChildRejected",
    effect: started.effect,
    failure: failureOf(
      new ApiError(
        `An open instance has the id "${started.id}" already; the child was not started. Give it another id, or leave \`id\` out.`,
        {
          code: "INSTANCE_EXISTS",
        },
      ),
    ),
  };
  const childShard = context.shardOf(tenant, started.id);
  return {
    start: fact,
    write: {
      run: started.run,
      shard: childShard,
      instance: {
        id: started.id,
        workflow: started.workflow,
        version: started.version,
        ...(fact.parent !== undefined && { parent: fact.parent }),
        ...(fact.correlationId !== undefined && {
          correlationId: fact.correlationId,
        }),
      },
      start: {
        tenant,
        run: started.run,
        shard: childShard,
        message: "start",
        fact: start,
      },
      rejection: {
        tenant,
        run,
        shard,
        message: mailIdentity(rejection),
        fact: JSON.stringify(rejection),
      },
    },
  };
}
