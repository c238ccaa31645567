/** Reads a body of server-sent events. Comments and fields that nobody needs are skipped. */
export type ServerSentEvent = { readonly id: string; readonly type: string; readonly data: string };

export async function* serverSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = eventOf(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function eventOf(block: string): ServerSentEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const name = line.slice(0, at);
    const value = line[at + 1] === " " ? line.slice(at + 2) : line.slice(at + 1);
    const before = fields.get(name);
    fields.set(name, before === undefined || name !== "data" ? value : `${before}\n${value}`);
  }
  const data = fields.get("data");
  return data === undefined ? undefined : { id: fields.get("id") ?? "", type: fields.get("event") ?? "message", data };
}
