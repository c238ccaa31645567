import { createHash } from "node:crypto";
import { isStorable, UnstorableTextError } from "../storable.ts";

/** What stands for a name and a key, or a name without a key, in the database. */
export function topicOf(name: string, key: string | undefined): string {
  if (!isStorable(name)) throw new UnstorableTextError("name");
  if (key !== undefined && !isStorable(key)) throw new UnstorableTextError("key");
  return createHash("sha256")
    .update(key === undefined ? name : `${name}\u001f${key}`)
    .digest("base64url");
}
