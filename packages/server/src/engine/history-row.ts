/** A turn as the store keeps it, and back: JSON of its facts, with payloads passed through the codec when there is one. */
import { WovyrError } from "@wovyr/sdk";
import type { Failure, HistoryFact, Payload, PayloadCodec, Turn } from "@wovyr/sdk/internal";
import type { HistoryRow } from "./ports/store.ts";

const payloadFields = ["input", "output", "payload", "value", "variables", "attributes", "memo", "heartbeat"] as const;

export class HistoryRows {
  readonly #codec: PayloadCodec | undefined;

  constructor(codec: PayloadCodec | undefined) {
    this.#codec = codec;
  }

  encode(facts: readonly HistoryFact[]): string | Promise<string> {
    if (this.#codec === undefined) return JSON.stringify(facts);
    return this.#mapAll(facts, (payload) => this.#encodePayload(payload)).then((mapped) => JSON.stringify(mapped));
  }

  decode(row: HistoryRow): Turn | Promise<Turn> {
    const facts = JSON.parse(row.events) as HistoryFact[];
    const turn = (events: readonly HistoryFact[]): Turn => ({
      seq: row.seq,
      at: row.at,
      node: row.node,
      events,
    });
    if (this.#codec === undefined) return turn(facts);
    return this.#mapAll(facts, (payload) => this.#decodePayload(payload)).then(turn);
  }

  /** Turns in order; synchronous in effect when there is no codec. */
  async decodeAll(rows: readonly HistoryRow[]): Promise<Turn[]> {
    if (this.#codec === undefined) return rows.map((row) => this.decode(row) as Turn);
    const turns: Turn[] = [];
    for (const row of rows) turns.push(await this.decode(row));
    return turns;
  }

  encodeFact(fact: HistoryFact): string | Promise<string> {
    const text = this.encode([fact]);
    return typeof text === "string" ? text.slice(1, -1) : text.then((array) => array.slice(1, -1));
  }

  encodeFailure(failure: Failure): string | Promise<string> {
    if (this.#codec === undefined) return JSON.stringify(failure);
    return mapFailure(failure, (payload) => this.#encodePayload(payload)).then((mapped) => JSON.stringify(mapped));
  }

  async decodeFailure(text: string): Promise<Failure> {
    const failure = JSON.parse(text) as Failure;
    return this.#codec === undefined ? failure : mapFailure(failure, (payload) => this.#decodePayload(payload));
  }

  async decodeFact(text: string): Promise<HistoryFact> {
    const turn = await this.decode({
      seq: 1,
      count: 1,
      at: 0,
      node: "",
      events: `[${text}]`,
    });
    return turn.events[0] as HistoryFact;
  }

  /** One payload on its way to the store. */
  async seal(payload: Payload): Promise<Payload> {
    return this.sealNow(payload);
  }

  /** The same, synchronous when there is no codec. */
  sealNow(payload: Payload): Payload | Promise<Payload> {
    return this.#codec === undefined ? payload : this.#encodePayload(payload);
  }

  async open(payload: Payload): Promise<Payload> {
    return this.#codec === undefined ? payload : this.#decodePayload(payload);
  }

  #mapAll(facts: readonly HistoryFact[], map: (payload: Payload) => Promise<Payload>): Promise<HistoryFact[]> {
    return Promise.all(facts.map((fact) => mapFact(fact, map)));
  }

  async #encodePayload(payload: Payload): Promise<Payload> {
    try {
      return await (this.#codec as PayloadCodec).encode(payload);
    } catch (error) {
      throw new WovyrError(`payload codec "${this.#codec?.name}" could not encode`, { code: "PAYLOAD_CODEC_FAILED", cause: error });
    }
  }

  async #decodePayload(payload: Payload): Promise<Payload> {
    try {
      return await (this.#codec as PayloadCodec).decode(payload);
    } catch (error) {
      throw new WovyrError(`payload codec "${this.#codec?.name}" could not decode; is its key the one that the value was written with?`, {
        code: "PAYLOAD_CODEC_FAILED",
        cause: error,
      });
    }
  }
}

async function mapFact(fact: HistoryFact, map: (payload: Payload) => Promise<Payload>): Promise<HistoryFact> {
  const mapped: Record<string, unknown> = { ...fact };
  for (const field of payloadFields) if (typeof mapped[field] === "string") mapped[field] = await map(mapped[field]);
  if ("carried" in fact && fact.carried !== undefined)
    mapped.carried = await Promise.all(fact.carried.map(async (event) => ({ ...event, payload: await map(event.payload) })));
  if ("failure" in fact && fact.failure !== undefined) mapped.failure = await mapFailure(fact.failure, map);
  if ("compensation" in fact && fact.compensation !== undefined) mapped.compensation = await mapFailure(fact.compensation, map);
  return mapped as HistoryFact;
}

async function mapFailure(failure: Failure, map: (payload: Payload) => Promise<Payload>): Promise<Failure> {
  return {
    ...failure,
    ...(failure.fields !== undefined && { fields: await map(failure.fields) }),
    ...(failure.thrown !== undefined && { thrown: await map(failure.thrown) }),
    ...(failure.cause !== undefined && {
      cause: await mapFailure(failure.cause, map),
    }),
  };
}
