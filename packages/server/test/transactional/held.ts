/** A workflow of one step that says when it has written, and returns when it is let go. */
import { activity, workflow } from "@wovyr/sdk";

export function held(note: string, written: () => Promise<unknown>) {
  const write = activity("write", { semantics: "transactional" }, async (_: undefined, { tx }) => {
    await tx`insert into ledger (note) values (${note})`;
    await written();
    return note;
  });
  return workflow("held", async function* () {
    return yield* write(undefined);
  });
}
