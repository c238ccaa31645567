/**
 * Events as CloudEvents 1.0 say them, the form in which they are published over HTTP.
 *
 * 1. `type` is the event's name, `subject` its key, `data` its payload.
 * 2. `source` and `id` together name the publication: said again, it is the same one.
 * 3. Extension attributes are taken and dropped, as the specification asks of whoever does not know them.
 */
import { type Static, Type } from "@sinclair/typebox";
import { eventKeyPattern } from "../model/event-key.ts";
import { anyValue, choice, nameSchema, timestamp } from "./kinds.ts";

/** The content type of an event whose attributes stand beside its data. */
export const cloudEventType = "application/cloudevents+json";

const shortText = Type.String({ pattern: eventKeyPattern, description: "1 to 255 characters, none of them a control character" });

export const CloudEvent = Type.Object(
  {
    specversion: choice(["1.0"]),
    id: shortText,
    source: Type.String({
      pattern: "^[A-Za-z0-9._~:/?#\\[\\]@!$&'()*+,;=%-]{1,512}$",
      description: "a URI reference of 1 to 512 characters",
    }),
    type: nameSchema,
    subject: Type.Optional(shortText),
    time: Type.Optional(timestamp),
    datacontenttype: Type.Optional(shortText),
    dataschema: Type.Optional(Type.String({ minLength: 1, maxLength: 2_048, description: "a URI of 1 to 2,048 characters" })),
    data: Type.Optional(anyValue),
  },
  {
    $id: "CloudEvent",
    additionalProperties: Type.Union([Type.String(), Type.Number(), Type.Boolean()], { description: "a text, a number or a boolean" }),
  },
);
export type CloudEvent = Static<typeof CloudEvent>;

/** What the client calls itself: its publications are named by their idempotency key alone, as those in process are. */
export const clientSource = "urn:wovyr:client";

/** Names the publication that an event is; a source holds no space. */
export function publicationOf({ source, id }: Pick<CloudEvent, "source" | "id">): string {
  return source === clientSource ? id : `${source} ${id}`;
}
