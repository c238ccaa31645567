import { publicationOf, readAt, zonedInstant } from "@wovyr/sdk/internal";
import { replayedHeader } from "./answer.ts";
import { attributePointer } from "./cloud-event.ts";
import type { Handlers } from "./handler.ts";

export const publishHandler: Pick<Handlers, "publishEvent"> = {
  async publishEvent({ operations, body, request }) {
    const { id, type, subject, time, data } = body;
    if (time !== undefined) readAt(attributePointer(request, "time"), (what) => zonedInstant(time, what));
    const { delivered, started, replayed } = await operations.publish(type, data, {
      ...(subject !== undefined && { key: subject }),
      idempotencyKey: publicationOf(body),
    });
    return { status: 202, value: { id, delivered, started }, ...(replayed && { headers: replayedHeader }) };
  },
};
